"""The local backend: a directory of manifests, and failures that are asked for."""

from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.configuration.failure_injection import FailureRequest, parse_manifest_failures
from gardenbus.common.api.configuration.member_agent import MemberBackendSettings
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.memberagent.backend.installed import new_backend
from gardenbus.memberagent.backend.local import LocalClusterBackend
from gardenbus.memberagent.backend.port import BackendContext
from gardenbus.memberagent.backend.records import REGISTERED, ClusterRecords, Registration
from tests.support.disks import small_disk
from tests.support.member_agents import a_manifest


async def a_backend(directory: Path, **changes: Any) -> LocalClusterBackend:
    backend = LocalClusterBackend(
        directory / "lisbon",
        changes.pop("settings", MemberBackendSettings()),
        SystemClock(),
        cluster="lisbon",
        **changes,
    )
    await backend.start()
    return backend


def failing(text: str) -> dict[str, Any]:
    return a_manifest(metadata={"annotations": {"local.backend.gardenbus.io/fail": text}})


async def test_what_is_applied_is_there_after_a_restart(tmp_path: Path) -> None:
    first = await a_backend(tmp_path)
    await first.apply("shop-work", [a_manifest("Namespace", "shop"), a_manifest()])
    await first.stop()
    second = await a_backend(tmp_path, namespaces=["default"])
    assert second.works() == {"shop-work"}
    assert second.facts().namespaces == {"default": "", "shop": "shop-work"}
    assert (await second.compare("w", [a_manifest()])).outcomes[0].differs is False


async def test_what_a_work_holds_no_more_goes(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    await backend.apply("shop-work", [a_manifest(), a_manifest("Secret", "key")])
    await backend.apply("shop-work", [a_manifest()])
    assert (await backend.compare("w", [a_manifest("Secret", "key")])).outcomes[0].differs
    assert await backend.remove("shop-work") is None
    assert backend.works() == set()


async def test_an_abandoned_object_stays_and_the_next_work_takes_it_over(tmp_path: Path) -> None:
    first = await a_backend(tmp_path)
    await first.apply("shop-work", [a_manifest("Namespace", "shop"), a_manifest()])
    assert await first.abandon("shop-work") is None
    second = await a_backend(tmp_path)
    for backend in (first, second):
        assert backend.works() == set()
        assert backend.facts().namespaces == {"shop": ""}
        assert (await backend.compare("w", [a_manifest()])).outcomes[0].differs is False
    (outcome,) = (await second.apply("other", [a_manifest()])).outcomes
    assert outcome.applied
    assert second.works() == {"other"}


async def test_an_object_belongs_to_one_work(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    await backend.apply("first", [a_manifest()])
    (outcome,) = (await backend.apply("second", [a_manifest()])).outcomes
    assert not outcome.applied
    assert outcome.message == "it belongs to the Work first already"
    assert backend.works() == {"first"}


async def test_a_failing_apply_leaves_what_was_there(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    await backend.apply("shop-work", [a_manifest()])
    (outcome,) = (await backend.apply("shop-work", [failing("apply=lis*")])).outcomes
    assert not outcome.applied
    assert (await backend.compare("w", [a_manifest()])).outcomes[0].differs is False
    (outcome,) = (await backend.apply("shop-work", [failing("apply=porto")])).outcomes
    assert outcome.applied


async def test_a_disk_that_is_full_is_named_and_what_was_there_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        backend = await a_backend(disk.path)
        await backend.apply("w", [a_manifest()])
        disk.fill()
        changed = a_manifest(data={"text": "x" * 8192})
        applied, failed = (await backend.apply("w", [a_manifest(), a_manifest("Secret", "key")])).outcomes
        assert applied.applied
        assert (failed.applied, "No space left on device" in failed.message) == (False, True)
        (failed,) = (await backend.apply("w", [changed])).outcomes
        assert not failed.applied
        assert (await backend.compare("w", [a_manifest()])).outcomes[0].differs is False
        disk.free()
        both = [changed, a_manifest("Secret", "key")]
        assert all(each.applied for each in (await backend.apply("w", both)).outcomes)
        assert len(list((disk.path / "lisbon" / "manifests").iterdir())) == len(both), "no drafts are left"


async def test_failures_that_are_counted_end_even_over_a_restart(tmp_path: Path) -> None:
    requests = [FailureRequest("apply", "ConfigMap/*", 2)]
    first = await a_backend(tmp_path, failures=requests)
    assert not (await first.apply("w", [a_manifest()])).outcomes[0].applied
    await first.stop()
    second = await a_backend(tmp_path, failures=requests)
    assert not (await second.apply("w", [a_manifest()])).outcomes[0].applied
    assert (await second.apply("w", [a_manifest()])).outcomes[0].applied


async def test_a_manifest_may_fail_to_go(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path, failures=parse_manifest_failures("delete,times=1"))
    await backend.apply("w", [a_manifest()])
    assert await backend.remove("w") == "ConfigMap shop/motd: Failed, as requested."
    assert await backend.remove("w") is None


async def test_what_starts_is_available_later_and_some_kinds_cannot_be_tracked(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path, settings=MemberBackendSettings(available_seconds=60))
    applied = await backend.apply("w", [a_manifest("Deployment", "web"), a_manifest("Job", "once"), a_manifest()])
    assert [outcome.available for outcome in applied.outcomes] == [False, None, True]
    assert applied.requeue_after_seconds is not None
    assert 50 < applied.requeue_after_seconds <= 60


async def test_switches_are_files(tmp_path: Path) -> None:
    backend = await a_backend(tmp_path)
    assert (backend.facts().problem, backend.facts().is_silent) == (None, False)
    for name in ("unhealthy", "silent", "apply-fails"):
        (tmp_path / "lisbon" / name).touch()
    assert (backend.facts().problem, backend.facts().is_silent) == ("Unhealthy, as requested.", True)
    assert not (await backend.apply("w", [a_manifest()])).outcomes[0].applied


async def test_a_file_that_cannot_be_read_is_thrown_away(tmp_path: Path) -> None:
    first = await a_backend(tmp_path)
    await first.apply("w", [a_manifest()])
    await first.stop()
    (file,) = (tmp_path / "lisbon" / "manifests").glob("*.json")
    file.write_bytes(b"{")
    (tmp_path / "lisbon" / "failed.json").write_bytes(b"")
    second = await a_backend(tmp_path)
    assert second.works() == set()
    assert (await second.apply("w", [a_manifest()])).outcomes[0].applied


def test_one_process_holds_a_directory(tmp_path: Path) -> None:
    first, second = ClusterRecords(tmp_path / "lisbon"), ClusterRecords(tmp_path / "lisbon")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_registration_lasts_and_one_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    first = ClusterRecords(tmp_path)
    assert first.acquire()
    first.register(Registration("landscape", "", "u1"))
    first.release()
    assert first.acquire()
    assert first.registered() == Registration("landscape", "", "u1")
    first.release()
    (tmp_path / REGISTERED).write_bytes(b"{")
    assert first.acquire()
    assert first.registered() is None
    first.release()


def test_a_backend_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path) -> None:
    context = BackendContext("lisbon", tmp_path, MemberBackendSettings(type="remote"), SystemClock())
    with pytest.raises(SettingsInvalid, match=r"cluster lisbon: backend.type: must be one of .*local.*'remote'"):
        new_backend(context)


@pytest.mark.parametrize("text", ["explode", "apply=a=b", "apply,times=x", "available=;apply,"])
def test_failures_that_cannot_be_read_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_manifest_failures(text)
