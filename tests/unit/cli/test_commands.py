import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.cli.client.api import ApiResponse, split_response
from gardenbus.cli.client.resource_args import parse_resource, subject_tail
from gardenbus.cli.client.store_address import given_settings, redis_url_of
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, ServiceEntry
from gardenbus.cli.main import app
from gardenbus.common.errors import BadRequest, SettingsInvalid, Unavailable
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

runner = CliRunner()


def a_landscape(directory: Path, *shoots: str) -> Path:
    file = directory / "landscape.yaml"
    documents = [a_project(), a_cloudprofile(), a_seed(shoots=1), *(a_shoot(name) for name in shoots)]
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_simulate_prints_one_document_a_landscape(tmp_path: Path):
    first = a_landscape(tmp_path, "a", "b")
    (tmp_path / "other").mkdir()
    second = a_landscape(tmp_path / "other")

    result = runner.invoke(app, ["simulate", "-o", "json", str(first), str(second)])

    assert result.exit_code == 0, result.output
    lines = [json.loads(part) for part in result.stdout.replace("\n}\n{", "\n}\0{").split("\0")]
    assert [line["landscape"] for line in lines] == [str(first), str(second)]
    placed, rejected = lines[0]["placements"]
    assert placed == {"shoot": "garden-dev/a", "seed": "aws-eu1", "message": None}
    assert rejected["shoot"] == "garden-dev/b"
    assert rejected["seed"] is None
    assert "capacity" in rejected["message"]
    assert lines[1]["placements"] == []


def test_simulate_shows_a_table_to_people(tmp_path: Path):
    result = runner.invoke(app, ["simulate", "--strategy", "MinimalDistance", str(a_landscape(tmp_path, "a"))])

    assert "1 of 1 placed" in result.stdout
    assert "aws-eu1" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate"],
        ["simulate", "--strategy", "Nearest", "x"],
        ["simulate", "no-such-file"],
        ["get", "x/"],
        ["nothing"],
    ],
)
def test_usage_errors_end_with_2(arguments: list[str]):
    assert runner.invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (3, ["get", "shoots"]),
        (3, ["status"]),
        (2, ["apply", "-f", "no-such-file.yaml"]),
        (2, ["up", "--replicas", "nats=3"]),
        (2, ["up", "--replicas", "scheduler=1000000000"]),
        (1, ["down"]),
    ],
)
def test_ends_are_told_by_exit_codes(tmp_path: Path, code: int, arguments: list[str]):
    assert runner.invoke(app, [*arguments, "--dir", str(tmp_path / "nothing")]).exit_code == code


def test_a_landscape_file_that_is_no_text_is_none(tmp_path: Path):
    file = LandscapeDirectory(tmp_path).landscape_file
    file.write_bytes(b'{"nats_url":"nats://here:1\xff","redis_url":""}')
    assert LandscapeDirectory(tmp_path).read() is None
    shown = runner.invoke(app, ["status", "--dir", str(tmp_path)])
    assert isinstance(shown.exception, SystemExit)


def test_addresses_in_the_status_can_be_opened_and_have_no_passwords(tmp_path: Path):
    services = (
        ServiceEntry(name="scheduler", health_url="http://127.0.0.1:1"),
        ServiceEntry(name="dashboard", health_url="http://127.0.0.1:2", url="http://127.0.0.1:3"),
    )
    nats, redis = "nats://a:s3cret@one:1,nats://b:s3cret@two:2", "redis://:s3cret@three:3/0"
    LandscapeDirectory(tmp_path).write(LandscapeFile(nats_url=nats, redis_url=redis, services=services))
    shown = [runner.invoke(app, ["status", "--dir", str(tmp_path), "-o", way]).stdout for way in ("table", "json")]

    rows = [line.split() for line in shown[0].splitlines()]
    assert ["scheduler", "down", "http://127.0.0.1:1/readyz"] in rows
    assert ["dashboard", "down", "http://127.0.0.1:3"] in rows
    for text in shown:
        assert "nats://one:1,nats://two:2" in text
        assert "s3cret" not in text
    status = json.loads(shown[1])
    assert [name for part in (status, *status["services"]) for name in part if "_" in name] == []


def test_a_kind_is_meant_by_any_of_its_words():
    assert parse_resource(["shoots"]) == ("shoot", (), True, "")
    assert parse_resource(["seed/aws"]) == ("seed", ("aws",), False, "")
    assert parse_resource(["cp", "a", "b"]) == ("cloudprofile", ("a", "b"), False, "")
    assert parse_resource(["gizmo", "a"]) == ("gizmo", ("a",), True, "")


def test_an_object_of_a_namespace_is_not_deleted_by_guess():
    assert subject_tail(parse_resource(["shoot"]), "a", "dev") == "shoot.dev.a"
    assert subject_tail(parse_resource(["shoot"]), "dev/a", None) == "shoot.dev.a"
    assert subject_tail(parse_resource(["seed"]), "aws", "dev") == "seed._.aws"
    with pytest.raises(BadRequest, match="-n"):
        subject_tail(parse_resource(["shoot"]), "a", None)
    assert subject_tail(parse_resource(["gizmo"]), "a", None) == "gizmo._.a", "it may be one without a namespace"
    assert subject_tail(parse_resource(["gizmo"]), "a", "dev") == "gizmo.dev.a"


def test_a_landscape_is_found_by_option_environment_or_directory(tmp_path: Path):
    LandscapeDirectory(tmp_path).write(LandscapeFile(nats_url="nats://here:1", redis_url="", prefix="mine"))
    environ = {"GARDENBUS_NATS_URL": "nats://environment:1", "GARDENBUS_PREFIX": "other"}

    assert find_landscape(tmp_path, None, None, {})[:2] == ("nats://here:1", "mine")
    assert find_landscape(tmp_path, "nats://option:1", None, environ)[:2] == ("nats://option:1", "other")
    assert find_landscape(None, None, "p", environ)[:2] == ("nats://environment:1", "p")
    with pytest.raises(Unavailable, match="gardenbus up"):
        find_landscape(tmp_path / "none", None, None, {})


def test_an_address_of_the_environment_that_is_none_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BadRequest, match=r"^GARDENBUS_NATS_URL: 'nats://h:99999' is no NATS address: write"):
        find_landscape(None, None, None, {"GARDENBUS_NATS_URL": "nats://me:secret@h:99999"})
    with pytest.raises(BadRequest, match=r"^'h:99999' is no NATS address"):
        find_landscape(None, "h:99999", None, {})
    for url, problem in (("redis://h:99999", "is no Redis address"), ("redis+sentinel://h", "lacks the name")):
        monkeypatch.setenv("GARDENBUS_REDIS_URL", url)
        with pytest.raises(BadRequest, match=f"^GARDENBUS_REDIS_URL: .*{problem}"):
            redis_url_of(None, None)
    monkeypatch.setenv("GARDENBUS_STREAM_REPLICAS", "2")
    with pytest.raises(SettingsInvalid, match="GARDENBUS_STREAM_REPLICAS: '2' is none of 0, 1, 3, 5"):
        given_settings("GARDENBUS_STREAM_REPLICAS")


def test_each_document_has_an_answer_of_its_own():
    together = ApiResponse(
        ok=True, result=[{"a": 1}, {"b": 2}], outcome=["created", "unchanged"], warnings=("careful",)
    )
    mixed = ApiResponse(
        ok=False,
        error={"message": "1 of 2"},
        result=[{"ok": True, "result": {}, "outcome": "created"}, {"ok": False, "error": {"code": 422}}],
    )
    unread = ApiResponse(ok=False, error={"code": 400})

    assert [response.outcome for response in split_response(together, 2)] == ["created", "unchanged"]
    assert [response.warnings for response in split_response(together, 2)] == [("careful",), ()]
    assert [response.ok for response in split_response(mixed, 2)] == [True, False]
    assert split_response(unread, 2) == [unread, unread]
    assert split_response(unread, 1) == [unread]


def test_invalid_configurations_are_refused_before_anything_starts(tmp_path: Path):
    file = tmp_path / "landscape.yaml"
    file.write_text(
        yaml.safe_dump_all(
            [
                {
                    "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
                    "kind": "GardenletConfiguration",
                    "resources": {"capacity": {"shoots": 1}, "reserved": {"shoots": 2}},
                    "seedConfig": {"metadata": {"name": "s1"}, "spec": {"provider": {"type": "aws", "region": "r"}}},
                },
                {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration", "x": 1},
            ]
        )
    )

    result = runner.invoke(app, ["up", "--dir", str(tmp_path / "state"), "-f", str(file)])

    assert result.exit_code == 2
    assert "of the seed s1: resources.reserved.shoots" in result.stderr
    assert "SchedulerConfiguration: x" in result.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("command", [["apply"], ["delete"]])
def test_nothing_to_apply_or_delete_is_a_usage_error(command: list[str]):
    result = runner.invoke(app, [*command, "-f", "-"], input="\n")

    assert result.exit_code == 2
    assert "no manifests in -" in result.stderr


def test_configurations_among_manifests_are_said_to_be_for_up(tmp_path: Path):
    configuration = {"kind": "GardenletConfiguration", "seedConfig": {"metadata": {"name": "s1"}}}
    file = tmp_path / "gardenlet.yaml"
    file.write_text(yaml.safe_dump(configuration))

    result = runner.invoke(app, ["apply", "-f", str(file), "--dir", str(tmp_path)])

    assert result.exit_code == 2
    assert "left out 1 GardenletConfiguration: it is for `gardenbus up -f`" in result.stderr


def test_the_version_is_told():
    result = runner.invoke(app, ["--version"])

    assert result.exit_code == 0
    assert result.stdout.startswith("gardenbus 0.")


def test_no_service_and_no_http_client_is_imported_before_a_command_needs_it():
    heavy = ("aiohttp", "gardenbus.apiserver", "gardenbus.scheduler", "gardenbus.gardenlet", "nats", "redis")
    program = f"import sys, gardenbus.cli.main; print([name for name in {heavy!r} if name in sys.modules])"

    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert reported.stdout == "[]\n"
