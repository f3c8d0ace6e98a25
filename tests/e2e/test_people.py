"""People with roles at the command line: what they see, what they follow, and what they are told they may not."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.builders import a_project, a_shoot
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.landscape import Ended, Landscape, ended

CREW = "garden-crew"
PEOPLE = {"vic": "", "mel": "", "eve": "viewer"}
"""Viewer and member of the Project, and one with a role in the landscape."""


class People(NamedTuple):
    """Contexts of people, and the landscape of the operator."""

    directory: Path
    landscape: Landscape

    def environment(self, **given: str) -> dict[str, str]:
        """The environment of somebody who knows the config file alone."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GARDENBUS_")}
        return {**outside, "GARDENBUS_CONFIG": str(self.directory / "config.yaml"), **given}

    async def start(self, *arguments: str, **given: str) -> asyncio.subprocess.Process:
        """Start `gardenbus`."""
        return await asyncio.create_subprocess_exec(
            str(gardenbus_program()),
            *arguments,
            cwd=self.directory,
            env=self.environment(**given),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def call(self, user: str, *arguments: str) -> Ended:
        """Run a command of somebody's to its end."""
        return await ended(await self.start(*arguments, "--context", user))

    @contextlib.asynccontextmanager
    async def following(self, user: str, *arguments: str) -> AsyncGenerator[list[str]]:
        """A command that does not end; the lines that it has printed so far."""
        process = await self.start(*arguments, "--context", user)
        lines: list[str] = []

        async def read() -> None:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                lines.append(line.decode().rstrip())

        reading = asyncio.create_task(read())
        try:
            yield lines
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await asyncio.gather(reading, process.wait())


def a_member(user: str, role: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user, "role": role}


@pytest.fixture
async def people(hosting: Landscape, tmp_path: Path) -> People:
    """Two Projects, of which these people know one, and a shoot in each."""
    members = [a_member("vic", "viewer"), a_member("mel", "admin")]
    found = People(tmp_path, hosting)
    for name, spec in (("crew", {"members": members}), ("rest", {})):
        await hosting.query("apply", a_project(name, f"garden-{name}", spec=spec))
        await hosting.query("apply", a_shoot("apollo", f"garden-{name}"))
    for user, role in PEOPLE.items():
        given = ("--role", role) if role else ()
        login = ("login", user, "--dir", str(hosting.directory), "--user", user, "--ttl", "1h", *given)
        made = await ended(await found.start(*login))
        assert made.code == 0, made
    return found


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_people_see_and_follow_what_their_roles_allow(people: People):
    await _one_object_by_name(people)
    await _check_rejections(people)
    await _what_is_followed(people)
    await _completion(people)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_the_operator_sees_what_each_of_two_people_holds_and_what_their_project_stores(people: People):
    options = ("-n", CREW, "-w", "-o", "name")
    async with people.following("vic", "get", "shoots", *options), people.following("mel", "get", "secrets", *options):

        async def seen() -> None:
            shown = await people.landscape.command("top", "users", "--once", "-o", "json")
            assert shown.code == 0, shown
            held = {(row["user"], row["limit"]): row["held"] for row in json.loads(shown.stdout)["items"]}
            for user in ("vic", "mel"):
                assert held.get((user, "watches")) == 1, held
                assert held.get((user, "connections"), 0) >= 1, held
            assert held.get(("Project crew", "storedObjects"), 0) >= 1, held
            assert held.get(("Project crew", "storedBytes"), 0) > 0, held

        await eventually(seen, every=0.5)
    picture = await people.landscape.command("top", "users", "--once")
    assert "Project crew" in picture.stdout, picture


async def _one_object_by_name(people: People) -> None:
    for user in PEOPLE:
        shown = await people.call(user, "get", "seeds")
        assert shown.code == 0, shown
        row = next(line.split() for line in shown.stdout.splitlines() if line.startswith("seed-a "))
        assert ("-/2" in row) == (user != "eve"), "how full a seed is takes a role in the landscape"
    for command in (
        ("describe", "shoot", "apollo", "-n", CREW),
        ("explain", "shoot", "apollo", "-n", CREW),
        ("wait", "shoot", "apollo", "-n", CREW, "--for", "create"),
        ("auth", "can-i", "--list", "-n", CREW),
    ):
        done = await people.call("vic", *command)
        assert done.code == 0, (command, done)
    described = await people.call("vic", "describe", "seed", "seed-a")
    assert "not yours to read" in described.stdout


async def _check_rejections(people: People) -> None:
    for user, arguments, needed in (
        ("vic", ("get", "shoots", "-w"), "-n NAMESPACE"),
        ("vic", ("get", "shoots", "-n", "garden-rest", "-w"), "the role viewer or operator of the landscape"),
        ("vic", ("get", "secrets", "-n", CREW, "-w"), "the role member or admin in project crew"),
        ("mel", ("watch", "-n", "garden-rest"), "the role viewer or operator of the landscape"),
        ("mel", ("top", "seeds", "--once"), "the role viewer or operator of the landscape"),
        ("eve", ("top", "users", "--once"), "the operator's own credentials"),
        ("mel", ("doctor",), "the operator's own credentials"),
        ("eve", ("label", "shoot", "apollo", "-n", CREW, "a=b"), "the role operator of the landscape"),
    ):
        rejected = await people.call(user, *arguments)
        assert (rejected.code, needed in rejected.stderr) == (1, True), (user, arguments, rejected)
        assert len(rejected.stderr.splitlines()) == 1, rejected
    shown = await people.call("eve", "top", "seeds", "--once")
    assert shown.code == 0, shown


async def _what_is_followed(people: People) -> None:
    follow = people.following
    async with (
        follow("vic", "get", "shoots", "-n", CREW, "-w", "-o", "name") as shoots,
        follow("mel", "get", "secrets", "-n", CREW, "-w", "-o", "name") as secrets,
        follow("mel", "watch", "-n", CREW, "-o", "name") as everything,
        follow("eve", "watch", "shoots", "--initial", "-o", "name") as landscape,
    ):

        async def begun() -> None:
            assert "shoot.core.gardener.cloud/apollo" in shoots
            assert landscape.count("shoot.core.gardener.cloud/apollo") >= 2

        await eventually(begun)
        number = 0

        async def followed() -> None:
            nonlocal number
            number += 1
            for namespace in (CREW, "garden-rest"):
                name = f"{'own' if namespace == CREW else 'foreign'}-{number}"
                await people.landscape.query("apply", a_shoot(name, namespace))
                secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
                await people.landscape.query("apply", secret)
            assert any(line.endswith("/own-1") for line in landscape)
            assert any("/foreign-" in line for line in landscape)
            for lines in (shoots, secrets, everything):
                assert any("/own-" in line for line in lines)

        await eventually(followed, every=1)
        for lines in (shoots, secrets, everything):
            assert not any("/foreign-" in line for line in lines)
        assert not any(line.startswith("secret") for lines in (shoots, everything, landscape) for line in lines)


async def _completion(people: People) -> None:
    for line, words in (
        ("gardenbus --context vic get shoot -n ", [CREW]),
        (f"gardenbus --context vic get shoot -n {CREW} ap", ["apollo"]),
    ):
        requested = {"_GARDENBUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}

        async def offered(requested: dict[str, str] = requested, words: list[str] = words) -> None:
            done = await ended(await people.start(**requested))
            assert done.stdout.split() == words, (requested, done)

        await eventually(offered)
