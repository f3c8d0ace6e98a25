"""The function library: its files, and what Redis says of them."""

import asyncio
import re
from importlib import resources

import pytest

from gardenbus.common.adapters.redis import function_library
from gardenbus.common.adapters.redis.users import COMMANDS, WITHOUT_KEYS
from gardenbus.common.errors import Unavailable, Unsupported
from tests.support.builders import a_seed, merged
from tests.support.servers import Server
from tests.support.stores import on_redis

DIRECTORY = resources.files("gardenbus.common.adapters.redis").joinpath("functions")


def test_every_file_of_the_directory_is_in_the_library_once() -> None:
    there = {entry.name for entry in DIRECTORY.iterdir()}
    assert sorted(there) == sorted(function_library.FILES)


def test_every_command_of_the_functions_is_granted_to_whoever_calls_them() -> None:
    called = {name.lower() for name in re.findall(r"'([A-Z]{3,})'", function_library.LIBRARY.source)}
    commands = called - {"limit", "withscores", "minid", "maxlen", "count", "bylex", "rev"}
    assert "zrangebylex" in commands
    for user in COMMANDS.keys() - WITHOUT_KEYS:
        assert commands <= set(COMMANDS[user]), user


def test_a_file_can_be_read_in_one_go() -> None:
    for name in function_library.FILES:
        assert DIRECTORY.joinpath(name).read_text(encoding="utf-8").count("\n") <= 300, name


def test_every_line_of_the_library_is_found_in_its_file() -> None:
    lines = function_library.LIBRARY.source.splitlines()
    for number, line in enumerate(lines[2:], start=3):
        name, _, own = function_library.LIBRARY.place(number).partition(":")
        if line in ("do", "end") or (line.startswith("local ") and lines[number] == "do"):
            continue
        assert DIRECTORY.joinpath(name).read_text(encoding="utf-8").splitlines()[int(own) - 1] == line


def test_each_export_is_used_by_a_file_after_its_own() -> None:
    texts = [re.sub(r"--[^\n]*", "", text) for text in function_library.texts().values()]
    unused = [
        name
        for number, text in enumerate(function_library.texts().values())
        for name in function_library.exports_of(text)
        if not any(re.search(rf"(?<![\w.:]){name}\b", later) for later in texts[number + 1 :])
    ]
    assert unused == []


async def test_what_fails_in_a_function_is_said_with_its_file_and_line(store_server: Server) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    await kit.open()
    try:
        with pytest.raises(Unsupported) as failure:
            await kit.connection.call("list", {}, read_only=True)
    finally:
        await kit.store.close()
    name, _, line = failure.value.message.partition("however often it is sent: ERR ")[2].partition(":")
    number = int(line.partition(":")[0])
    assert name == "lists.lua"
    assert "op.after" in DIRECTORY.joinpath(name).read_text(encoding="utf-8").splitlines()[number - 1]


async def test_a_write_that_fails_in_a_function_is_not_sent_again_for_ever_and_harms_no_other(
    store_server: Server,
) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    await kit.open()
    try:
        failed, created = await asyncio.gather(
            kit.connection.call("put", {"key": "seed||broken"}),
            kit.store.create(a_seed("sound")),
            return_exceptions=True,
        )
    finally:
        await kit.store.close()
    assert isinstance(failed, Unsupported)
    assert re.search(r"however often it is sent: .*\.lua:\d+", failed.message)
    assert not isinstance(created, BaseException)


_OF_THE_OPENING = {"join", "vouch", "retire", "forget_opening"}
"""Functions that nobody calls with what somebody sent."""


async def test_no_function_that_fails_on_its_operation_is_called_again_for_ever(store_server: Server) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    await kit.open()
    names = set(re.findall(r"register\('([a-z_]+)'", function_library.LIBRARY.source))
    assert {"put", "bind", "list"} <= names
    outcomes: dict[str, str] = {}
    try:
        for name in sorted(names - _OF_THE_OPENING):
            try:
                await kit.connection.call(name, {"key": 7, "items": 7, "ops": "x", "after": [], "kinds": 7})
            except (Unavailable, Unsupported) as error:
                outcomes[name] = type(error).__name__
    finally:
        await kit.store.close()
    assert set(outcomes.values()) == {"Unsupported"}, outcomes
    assert {"bind", "put"} <= outcomes.keys()


async def test_an_error_of_the_server_inside_a_function_is_no_fault_of_what_was_sent(store_server: Server) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    await kit.open()
    await kit.connection.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Unavailable):
            await kit.store.create(a_seed("sound"))
        with pytest.raises(Unavailable):
            await kit.connection.call("bind", {"items": []})
    finally:
        await kit.connection.command("CONFIG", "SET", "maxmemory", "0")
        await kit.store.close()


async def test_a_key_of_another_type_fails_the_write_that_meets_it_alone(store_server: Server) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    await kit.open()
    try:
        sound = await kit.created(a_seed("sound"))
        await kit.connection.command("SET", kit.connection.key(f"o:{sound.key.stored}"), "text")
        found = await asyncio.gather(
            kit.store.update(sound, merged(sound.document(), {"spec": {"provider": {"region": "there"}}})),
            kit.store.create(a_seed("another")),
            return_exceptions=True,
        )
    finally:
        await kit.store.close()
    assert isinstance(found[0], Unsupported)
    assert not isinstance(found[1], BaseException)
