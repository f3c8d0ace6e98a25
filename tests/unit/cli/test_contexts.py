"""Which landscape is meant, and the config file."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.contexts.config import ContextEntry, ContextsConfig, config_file, read_config, url_of, write_config
from gardenbus.cli.contexts.selection import selected_context
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, default_directory, directory_option
from gardenbus.cli.main import app
from gardenbus.common.adapters.addresses import without_user
from gardenbus.common.errors import BadRequest, Unavailable

SECRET = "s3cret"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the config file will be; the working directory has a landscape of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GARDENBUS_NATS_URL", raising=False)
    monkeypatch.delenv("GARDENBUS_PREFIX", raising=False)
    LandscapeDirectory(tmp_path / ".gardenbus").write(LandscapeFile(nats_url="nats://here:1", redis_url=""))
    LandscapeDirectory(tmp_path / "other").write(LandscapeFile(nats_url="nats://other:1", redis_url="", prefix="o"))
    config = tmp_path / "config" / "config.yaml"
    monkeypatch.setenv("GARDENBUS_CONFIG", str(config))
    return config


@pytest.fixture
def environ(file: Path, tmp_path: Path) -> dict[str, str]:
    """An environment with a config file of three contexts, `lab` being the current one."""
    contexts = {
        "lab": ContextEntry(nats_url="nats://lab:1", prefix="l"),
        "plain": ContextEntry(nats_url="plain:1"),
        "near": ContextEntry(dir=str(tmp_path / "other")),
    }
    write_config(file, ContextsConfig("lab", contexts))
    return {"GARDENBUS_CONFIG": str(file)}


def gardenbus(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def in_context(name: str, *arguments: Any) -> tuple[str, str]:
    token = selected_context.set(name)
    try:
        return find_landscape(*arguments)[:2]
    finally:
        selected_context.reset(token)


def test_an_option_comes_before_the_environment_that_before_the_current_context_that_before_the_working_directory(
    environ: dict[str, str], tmp_path: Path
):
    outside = {**environ, "GARDENBUS_NATS_URL": "nats://environment:1"}
    other = tmp_path / "other"

    assert find_landscape(None, "nats://option:1", None, outside)[:2] == ("nats://option:1", "garden")
    assert find_landscape(other, None, None, outside)[:2] == ("nats://other:1", "o")
    assert in_context("plain", None, None, None, outside) == ("plain:1", "garden")
    assert find_landscape(None, None, None, outside)[:2] == ("nats://environment:1", "garden")
    assert find_landscape(None, None, None, {**outside, "GARDENBUS_DIR": str(other)})[0] == "nats://environment:1"
    assert find_landscape(None, None, None, {**environ, "GARDENBUS_DIR": str(other)})[:2] == ("nats://other:1", "o")
    assert in_context("plain", None, None, None, {**environ, "GARDENBUS_DIR": str(other)}) == ("plain:1", "garden")
    assert find_landscape(None, None, None, environ)[:2] == ("nats://lab:1", "l")
    assert find_landscape(None, None, None, {})[:2] == ("nats://here:1", "garden")


def test_suggested_commands_name_no_directory_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert default_directory({}) == Path(".gardenbus")
    monkeypatch.setenv("GARDENBUS_DIR", str(tmp_path / "mine"))
    assert directory_option(tmp_path / "mine") == ""
    assert directory_option(Path(".gardenbus")) == " --dir .gardenbus"


def test_a_context_that_is_named_brings_its_prefix_and_the_current_one_leaves_it_to_the_environment(
    environ: dict[str, str],
):
    outside = {**environ, "GARDENBUS_PREFIX": "e"}

    assert in_context("lab", None, None, "option", outside)[1] == "option"
    assert in_context("lab", None, None, None, outside)[1] == "l"
    assert in_context("plain", None, None, None, outside)[1] == "e"
    assert find_landscape(None, None, None, outside)[1] == "e"
    assert find_landscape(None, None, None, environ)[1] == "l"


def test_a_context_may_be_a_state_directory_which_is_told(environ: dict[str, str], tmp_path: Path):
    assert in_context("near", None, None, None, environ) == ("nats://other:1", "o")
    token = selected_context.set("near")
    try:
        assert find_landscape(None, None, None, environ).directory == tmp_path / "other"
    finally:
        selected_context.reset(token)


@pytest.mark.parametrize("options", [(Path("x"), None), (None, "nats://x:1")])
def test_a_context_and_another_option_contradict_each_other(environ: dict[str, str], options: tuple[Any, Any]):
    with pytest.raises(BadRequest, match="exactly one of them chooses the landscape"):
        in_context("lab", *options, None, environ)


def test_a_broken_file_is_no_obstacle_for_who_says_where(environ: dict[str, str], file: Path):
    file.write_text("{")

    assert find_landscape(None, "nats://option:1", None, environ)[0] == "nats://option:1"
    with pytest.raises(BadRequest, match="is no YAML"):
        find_landscape(None, None, None, environ)


def test_the_option_stands_before_the_command_or_behind_it_and_is_forgotten_by_the_next_call(environ: dict[str, str]):
    del environ
    for words in (["--context", "nope", "get", "seeds"], ["get", "seeds", "--context", "nope"]):
        result = gardenbus(*words)
        assert result.exit_code == 2
        assert "no context 'nope': there is lab, near, plain" in result.stderr

    assert gardenbus("config", "current-context").stdout == "lab\n"


def test_a_command_that_would_ignore_the_option_refuses_it(environ: dict[str, str]):
    del environ
    for command in ("down", "status", "logs", "up", "bench", "config"):
        result = gardenbus("--context", "lab", command)
        assert result.exit_code == 2, command
        assert "takes no --context" in " ".join(result.stderr.replace("│", " ").split())


def test_what_if_asks_the_context(environ: dict[str, str]):
    del environ

    assert "no context 'nope'" in gardenbus("simulate", "--context", "nope").stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "Expected `object`, got `array`; it has current-context and contexts"),
        ("current_context: lab", "unknown field `current_context`; it has current-context and contexts"),
        ('{"contexts": {"lab": {"\\ud83d": "a"}}}', "context lab: "),
        ('{"\\ud83d": "a"}', "is no YAML"),
        ("current-context: 2026-02-30", "is no YAML"),
        ("[" * 3000, "is no YAML"),
        ("contexts: [lab]", "Expected `object | null`, got `array` - at `$.contexts`"),
        ("contexts: {lab: nats://lab:1}", "context lab: Expected `object`, got `str`"),
        ("contexts: {lab: {nats_url: nats://lab:1}}", "context lab: Object contains unknown field `nats_url`"),
        ("contexts: {lab: {nats-url: 4222}}", "context lab: Expected `str`, got `int` - at `$.nats-url`"),
        ("contexts: {lab: }", "context lab: nats-url or dir, one of them: a context has nats-url"),
        ("contexts: {lab: {nats-url: 'lab:1', dir: /x}}", "context lab: nats-url or dir, not both"),
        ("contexts: {lab: {dir: /x, credentials: /y}}", "context lab: credentials goes with nats-url, not with dir"),
        ("contexts: {lab: {dir: x}}", "context lab: dir: x depends on where one stands: write a path that begins with"),
        ("{current-context: lab, contexts: {lab: {nats-url: 'http://x'}}}", "context lab: 'http://x' is no NATS addr"),
        ("contexts: {lab: {dir: 2026-02-30}}", "is no YAML: day is out of range for month"),
        (f"contexts: {'[' * 900}{']' * 900}", "is no YAML: "),
        (
            '{"contexts": {"lab": {"nats-url": "nats://lab:1", "prefix": "\\ud800"}}}',
            "config.yaml: 'utf-8' codec",
        ),
        (
            '{"contexts": {"\\ud800": {"nats-url": "nats://lab:1"}}}',
            "config.yaml: 'utf-8' codec",
        ),
        ("current-context: lab", "no context 'lab': there is none yet; `gardenbus config set-context` makes one"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_what_to_write(file: Path, content: str, problem: str):
    file.parent.mkdir()
    file.write_text(content)

    result = gardenbus("get", "seeds")

    assert result.exit_code == 2
    assert problem in result.stderr


def test_the_file_is_where_the_environment_says_or_below_the_home():
    assert config_file({"GARDENBUS_CONFIG": "/a/b", "XDG_CONFIG_HOME": "/c"}) == Path("/a/b")
    assert config_file({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/gardenbus/config.yaml")
    assert config_file({"HOME": "/h"}) == Path("/h/.config/gardenbus/config.yaml")
    assert config_file({}) is None
    assert read_config(None) == ContextsConfig()
    with pytest.raises(BadRequest, match="GARDENBUS_CONFIG"):
        write_config(None, ContextsConfig())


def test_the_file_is_replaced_whole_and_for_its_owner_alone(file: Path, monkeypatch: pytest.MonkeyPatch):
    write_config(file, ContextsConfig("a", {"a": ContextEntry(nats_url="a:1")}))
    file.chmod(0o644)
    modes: list[int] = []
    replace = Path.replace

    def reject(draft: Path, target: Path) -> Path:
        modes.append(stat.S_IMODE(draft.stat().st_mode))
        raise OSError(f"no room for {target}")

    monkeypatch.setattr(Path, "replace", reject)
    with pytest.raises(BadRequest, match=r"cannot write .*no room"):
        write_config(file, ContextsConfig("b", {"b": ContextEntry(nats_url="b:1")}))

    assert modes == [0o600]
    assert read_config(file).current_context == "a"
    assert list(file.parent.iterdir()) == [file]
    monkeypatch.setattr(Path, "replace", replace)
    write_config(file, ContextsConfig("b", {"b": ContextEntry(nats_url="b:1")}))
    assert read_config(file).current_context == "b"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path):
    file.parent.mkdir()
    file.symlink_to(tmp_path / "kept.yaml")

    write_config(file, ContextsConfig("", {"b": ContextEntry(nats_url="b:1")}))

    assert file.is_symlink()
    assert yaml.safe_load((tmp_path / "kept.yaml").read_text()) == {"contexts": {"b": {"nats-url": "b:1"}}}


def test_a_place_where_nothing_can_be_written_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GARDENBUS_CONFIG", "/proc/nowhere/config.yaml")

    result = gardenbus("config", "set-context", "a", "--nats-url", "a:1")

    assert result.exit_code == 2
    assert "cannot write /proc/nowhere/config.yaml" in result.stderr


def test_contexts_are_made_changed_chosen_and_forgotten(file: Path, tmp_path: Path):
    assert gardenbus("config", "get-contexts").stdout == ""
    assert gardenbus("config", "current-context").exit_code == 1
    made = gardenbus("config", "set-context", "lab", "--nats-url", "nats://lab:1", "--prefix", "l", "--current")
    assert made.stdout == "context lab created\n"
    assert gardenbus("config", "set-context", "here", "--dir", "other").stdout == "context here created\n"
    assert gardenbus("config", "set-context", "lab", "--nats-url", "tls://lab:2").stdout == "context lab configured\n"

    assert read_config(file) == ContextsConfig(
        "lab",
        {"lab": ContextEntry(nats_url="tls://lab:2", prefix="l"), "here": ContextEntry(dir=str(tmp_path / "other"))},
    )
    lines = gardenbus("config", "get-contexts").stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [["here", str(tmp_path / "other")], ["*", "lab", "tls://lab:2", "l"]]
    assert gardenbus("config", "get-contexts", "-o", "name").stdout == "here\nlab\n"
    assert gardenbus("config", "use-context", "here").exit_code == 0
    assert gardenbus("config", "current-context").stdout == "here\n"
    assert gardenbus("config", "delete-context", "here").exit_code == 0
    assert read_config(file) == ContextsConfig("", {"lab": ContextEntry(nats_url="tls://lab:2", prefix="l")})
    assert gardenbus("config", "use-context", "here").exit_code == 2
    assert gardenbus("config", "delete-context", "here").exit_code == 2


def test_the_file_is_shown_without_users_and_passwords(file: Path):
    write_config(
        file,
        ContextsConfig("lab", {"lab": ContextEntry(nats_url="nats://ann:pw@lab:1"), "b": ContextEntry(nats_url="b:1")}),
    )

    shown = gardenbus("config", "view").stdout
    programs = json.loads(gardenbus("config", "view", "--minify", "-o", "json").stdout)

    assert "pw" not in shown
    assert yaml.safe_load(shown)["contexts"]["lab"] == {"nats-url": "nats://lab:1"}
    assert programs == {"currentContext": "lab", "contexts": {"lab": {"natsUrl": "nats://lab:1"}}}
    assert "ann:pw@" in gardenbus("config", "view", "--raw").stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["a"], "context a: it needs --nats-url or --dir"),
        (["a", "--nats-url", "a:1", "--dir", "b"], "--nats-url or --dir, not both"),
        (["a", "--dir", "b", "--credentials", "c"], "credentials goes with nats-url, not with dir"),
        (["a", "--nats-url", f"http://ann:{SECRET}@a"], "'http://a' is no NATS address: write nats://host:port"),
        (["", "--nats-url", "a:1"], "a context needs a name"),
    ],
)
def test_a_context_that_says_nothing_or_two_things_is_not_made(file: Path, options: list[str], problem: str):
    result = gardenbus("config", "set-context", *options)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert SECRET not in result.output
    assert not file.exists()


@pytest.mark.parametrize(
    ("who", "urls", "expected"),
    [
        (f"ann:{SECRET}\n", "nats://lab:1", f"nats://ann:{SECRET}@lab:1"),
        (f"ann:{SECRET}@%", "a:1,tls://b:2", f"nats://ann:{SECRET}@%@a:1,tls://ann:{SECRET}@%@b:2"),
        (SECRET, "nats://bob:old@lab:1", f"nats://{SECRET}@lab:1"),
    ],
)
def test_credentials_go_into_the_address_as_they_are(tmp_path: Path, who: str, urls: str, expected: str):
    credentials = tmp_path / "credentials"
    credentials.write_text(who)

    assert url_of(ContextEntry(nats_url=urls, credentials=str(credentials))) == expected
    assert SECRET not in without_user(expected)


@pytest.mark.parametrize(
    ("who", "problem"),
    [
        (None, "cannot be read"),
        ("", "one line, user:password or a token"),
        (f"ann\n{SECRET}", "one line, user:password or a token"),
        (f"ann:{SECRET}/x", r"is to have no # , / \? \["),
        (f"ann:{SECRET}ä", "only ASCII"),
    ],
)
def test_credentials_that_cannot_be_used_are_refused_by_their_file(tmp_path: Path, who: str | None, problem: str):
    file = tmp_path / "credentials"
    if who is not None:
        file.write_text(who)

    with pytest.raises(BadRequest, match=problem) as rejected:
        url_of(ContextEntry(nats_url="nats://lab:1", credentials=str(file)))

    assert str(rejected.value).startswith(f"credentials: {file} ")
    assert SECRET not in str(rejected.value)


def test_credentials_are_never_shown(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opening: Any = connected
    monkeypatch.setitem(opening.__wrapped__.__kwdefaults__, "timeout_seconds", 0.1)
    credentials = tmp_path / "credentials"
    credentials.write_text(f"ann:{SECRET}")
    address = f"nats://ann:{SECRET}@127.0.0.1:1"
    made = [
        gardenbus("config", "set-context", "inline", "--nats-url", address),
        gardenbus("config", "set-context", "file", "--nats-url", "127.0.0.1:1", "--credentials", str(credentials)),
    ]
    shown = [gardenbus("config", "get-contexts", "-o", way) for way in ("table", "wide", "json", "yaml", "name")]
    failed = [gardenbus(*command, "--context", name) for name in ("inline", "file") for command in (["get", "seeds"],)]
    examined = [gardenbus("doctor", "--context", name) for name in ("inline", "file")]

    assert [result.exit_code for result in (*made, *shown, *failed, *examined)] == [0] * 7 + [3] * 2 + [1] * 2
    assert all("no NATS at " in result.output for result in (*failed, *examined))
    assert all(SECRET not in result.output for result in (*made, *shown, *failed, *examined))
    assert SECRET in file.read_text()  # it was asked to be kept there; that is why the file is its owner's alone


def test_no_landscape_says_how_one_is_meant(tmp_path: Path):
    with pytest.raises(Unavailable, match=r"gardenbus up --dir .*--nats-url or --context"):
        find_landscape(tmp_path / "none", None, None, {})
