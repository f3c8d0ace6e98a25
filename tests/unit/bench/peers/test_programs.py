"""Programs of peers: built with Go, fed with manifests, and believed only where they placed everything."""

import json
import stat
from pathlib import Path

import pytest

from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.peers.programs import built, measured, write_manifests

READING = {"peer": "gardener v1", "go": "go1.26", "placed": 2, "seconds": 0.5, "cpu_seconds": 0.25}


def program(folder: Path, text: str, name: str = "peer") -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def manifests(folder: Path) -> Path:
    file = folder / "manifests.jsonl"
    write_manifests(file, [{"kind": "Seed"}, {"kind": "Shoot"}])
    return file


def test_a_peer_reads_the_manifests_and_its_reading_is_returned(tmp_path: Path) -> None:
    counting = program(tmp_path, f"[ \"$(wc -l)\" = 2 ] && echo '{json.dumps(READING)}'")
    reading = measured(counting, manifests(tmp_path), 2)
    assert (reading.placed, reading.seconds, reading.cpu_seconds) == (2, 0.5, 0.25)


def test_a_peer_that_places_less_than_all_is_no_measurement(tmp_path: Path) -> None:
    less = {**READING, "placed": 1, "first_error": "no seed is usable"}
    with pytest.raises(BenchFailed, match="placed 1 of 2: no seed is usable"):
        measured(program(tmp_path, f"echo '{json.dumps(less)}'"), manifests(tmp_path), 2)


def test_a_peer_that_fails_is_named_with_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(BenchFailed, match="peer ended with 3: out of memory"):
        measured(program(tmp_path, "echo out of memory >&2; exit 3"), manifests(tmp_path), 2)


def test_without_go_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchFailed, match="`go` is not on PATH"):
        built("gardener", tmp_path)


def test_outside_of_a_clone_it_says_where_the_sources_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "exit 1", "go")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchFailed, match=r"gardener/go\.mod is not there: run this in a clone"):
        built("gardener", tmp_path, tmp_path / "sources")


def test_a_build_that_fails_is_told_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources/gardener").mkdir(parents=True)
    (tmp_path / "sources/gardener/go.mod").write_text("module peers")
    program(tmp_path, "echo no such module >&2; exit 1", "go")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchFailed, match="gardener cannot be built: no such module"):
        built("gardener", tmp_path, tmp_path / "sources")
