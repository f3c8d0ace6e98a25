from typing import Annotated

import msgspec
import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, load


class QueueSettings(CommonSettings, frozen=True, kw_only=True):
    batch: Annotated[int, msgspec.Meta(gt=0)] = 100


def test_defaults_hold_when_nothing_is_given():
    settings = load(CommonSettings, environ={})

    assert settings.nats_url == "nats://127.0.0.1:4222"
    assert settings.prefix == "garden"
    assert settings.health_port == 0
    assert settings.instance


def test_the_environment_is_read_by_the_names_of_the_fields():
    settings = load(QueueSettings, {"GARDENBUS_BATCH": "7", "GARDENBUS_HEALTH_PORT": "8080"})

    assert settings.batch == 7
    assert settings.health_port == 8080


@pytest.mark.parametrize("url", ["foo", "http://me:secret@nats:4222"])
def test_an_address_that_is_none_is_rejected_with_an_example_and_not_shown(url: str):
    with pytest.raises(SettingsInvalid) as caught:
        load(CommonSettings, {"GARDENBUS_NATS_URL": url})

    assert "GARDENBUS_NATS_URL: " in str(caught.value)
    assert str(caught.value).endswith("; it looks like nats://nats.example.org:4222")
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("STREAM_REPLICAS", "2", "'2' is none of 0, 1, 3, 5"),
        ("STREAM_REPLICAS", "-1", "'-1' is none of 0, 1, 3, 5"),
        ("STREAM_REPLICAS", "x", "'x' is none of 0, 1, 3, 5"),
        ("LOG_LEVEL", "loud", "'loud' is none of debug, info, warning, error"),
        ("NATS_SYNC_ALWAYS", "maybe", "'maybe' is none of true, false"),
        ("DISABLED_SHORTCUTS", "hint", "it looks like hints,held-pages"),
        ("REDIS_REPLICAS", "17", "'17': Expected `int` <= 16"),
        ("NATS_URL", "nats://me:secret@h1:99999", "'nats://h1:99999' is no NATS address: write nats://host:port"),
        ("NATS_URL", "nats://h1:4222,tls://", "'tls://' is no NATS address: write nats://host:port"),
        ("REDIS_URL", "redis://me:secret@h:99999/0", "'redis://h:99999/0' is no Redis address"),
        ("REDIS_URL", "redis+sentinel://me:secret@h1,h2", "lacks the name of their master: append it"),
    ],
)
def test_a_problem_names_the_variable_what_is_wrong_and_what_would_be_right(variable: str, value: str, problem: str):
    with pytest.raises(SettingsInvalid) as caught:
        load(CommonSettings, {f"GARDENBUS_{variable}": value})

    (reported,) = caught.value.problems
    assert reported.startswith(f"GARDENBUS_{variable}: ")
    assert problem in reported
    assert "secret" not in reported


@pytest.mark.parametrize(
    "url",
    ["nats://me:secret@h1:4222,nats://h2:4222", "tls://h1:4222,h2:4222", "ws://h1/bus", "nats://[::1]:4222"],
)
def test_addresses_of_one_server_and_of_several_are_accepted(url: str):
    assert load(CommonSettings, {"GARDENBUS_NATS_URL": url}).nats_url == url


def test_all_problems_are_told_at_once():
    environ = {"GARDENBUS_NATS_URL": "http://x", "GARDENBUS_HEALTH_PORT": "70000", "GARDENBUS_BATCH": "few"}

    with pytest.raises(SettingsInvalid) as caught:
        load(QueueSettings, environ)

    problems = caught.value.problems
    assert [problem.partition(":")[0] for problem in problems] == [
        "GARDENBUS_NATS_URL",
        "GARDENBUS_HEALTH_PORT",
        "GARDENBUS_BATCH",
    ]
    assert "Expected `int`, got `str`" in problems[2]


@pytest.mark.parametrize("prefix", ["a.b", "Garden", "a b", "*", ""])
def test_a_prefix_that_is_no_label_is_refused(prefix: str):
    with pytest.raises(SettingsInvalid):
        load(CommonSettings, environ={"GARDENBUS_PREFIX": prefix})


def test_shortcuts_are_taken_unless_they_are_disabled():
    settings = load(CommonSettings, {"GARDENBUS_DISABLED_SHORTCUTS": "hints,fetching-ahead"})
    assert [settings.takes(each) for each in ("hints", "held-pages", "fetching-ahead")] == [False, True, False]
