"""The decisions that Gardener's own scheduler took, where they are at hand."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(os.environ.get("GARDENBUS_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "golden"


def expectations() -> list[dict[str, Any]]:
    """One entry a landscape; none where the decisions are not at hand."""
    expected = GOLDEN / "expected.jsonl"
    return [json.loads(line) for line in expected.read_text().splitlines()] if expected.exists() else []


def required_expectations() -> list[dict[str, Any]]:
    """The same; skips the test without them, and fails it where GARDENBUS_SHARED promises them."""
    found = expectations()
    if not found and "GARDENBUS_SHARED" in os.environ:
        pytest.fail(f"no golden decisions in {GOLDEN}, where GARDENBUS_SHARED says that they are")
    if not found:
        pytest.skip(f"no golden decisions in {GOLDEN}; GARDENBUS_SHARED may say where they are")
    return found


def manifests(expected: dict[str, Any]) -> dict[str, Any]:
    """The landscape, a List of manifests, that an entry is about."""
    landscape: dict[str, Any] = json.loads((GOLDEN / expected["landscape"]).read_text())
    return landscape
