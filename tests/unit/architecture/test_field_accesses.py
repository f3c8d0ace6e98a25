"""Manifests are read by their fields' names where kinds are described and ruled; elsewhere by typed views.

Rooms that may: the kinds (`common.api`), each `domain`, which has the rules of kinds, the merge (`apiserver.registry`),
patches (`kubeapi.domain.patches`), the store's edge (`common.adapters.redis`), backends and the resource manager, to
which all manifests are alike. An access begins with `spec`, `status` or `metadata`.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = frozenset({"spec", "status", "metadata"})
MAY = (
    "common/api",
    "common/adapters",
    "apiserver/registry",
    "gardenlet/backend",
    "gardenlet/resource_manager",
    "memberagent/backend",
)
MEMBERS = ("libs", "services")
"""The client reads what services of other versions bring."""
READERS = frozenset({"section"})
"""Functions that read a part of a document by its name."""

LIMITS: Mapping[str, int] = {
    "agent/kubernetes": 1,
    "apiserver": 1,
    "apiserver/access": 2,
    "apiserver/controllers": 1,
    "apiserver/messages": 5,
    "apiserver/requests": 11,
    "autoscaler/controllers": 1,
    "autoscaler/watch": 5,
    "common/controller": 4,
    "controllermanager/controllers": 10,
    "controllermanager/watch": 9,
    "dashboard": 1,
    "dashboard/web": 12,
    "diagnostics": 14,
    "fleet": 5,
    "gardenlet": 2,
    "gardenlet/clients": 3,
    "gardenlet/controllers": 19,
    "gardenlet/watch": 1,
    "identity": 1,
    "identity/controllers": 2,
    "kubeapi/requests": 16,
    "kubeapi/watch": 4,
    "managedseedset/controllers": 9,
    "managedseedset/watch": 10,
    "memberagent": 2,
    "memberagent/clients": 1,
    "memberagent/controllers": 5,
    "memberagent/watch": 1,
    "placement/controllers": 11,
    "placement/store": 5,
    "placement/watch": 3,
    "relay/adapters": 1,
    "scheduler/requests": 2,
    "scheduling": 1,
    "scheduling/descheduling": 4,
}
"""Accesses in other rooms, of earlier days: numbers go down only. A new one goes through a view, or into `domain`."""


def accesses(source: str) -> Iterator[int]:
    """Lines in which a dict is read by the name of a manifest's part."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Subscript(slice=ast.Constant(value=str(part)), ctx=ast.Load())
                | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(part)), *_])
            ) if part in PARTS:
                yield node.lineno
            case ast.Call(func=ast.Name(id=reader), args=[_, ast.Constant(value=str(part)), *_]) if (
                reader in READERS and part in PARTS
            ):
                yield node.lineno
            case _:
                pass


def room_of(path: Path) -> str:
    """`<package>/<room>`, or `<package>` for a module beside the rooms."""
    parts = path.parts[path.parts.index("src") + 2 :]
    return "/".join(parts[:2] if len(parts) > 2 else parts[:1])


def too_many(root: Path, limits: Mapping[str, int]) -> Mapping[str, int]:
    """Rooms with more accesses than they may have, each with their number."""
    found: Counter[str] = Counter()
    for member in MEMBERS:
        for path in (root / member).rglob("src/**/*.py"):
            room = room_of(path)
            if not room.endswith("/domain") and room not in MAY:
                found[room] += sum(1 for _ in accesses(path.read_text(encoding="utf-8")))
    return {room: number for room, number in sorted(found.items()) if number > limits.get(room, 0)}


def test_no_room_reads_more_fields_by_name_than_before() -> None:
    assert too_many(ROOT, LIMITS) == {}, "read it by a typed view of `common.api`, or decide in `domain`"


def test_the_limit_of_a_room_without_accesses_is_gone() -> None:
    assert LIMITS.keys() == too_many(ROOT, {}).keys()


@pytest.mark.parametrize(
    "line",
    [
        'seed["spec"]["provider"]',
        'shoot.get("status", {})',
        'section(document, "metadata", "labels")',
    ],
)
def test_a_field_that_is_read_by_name_is_rejected(tmp_path: Path, line: str) -> None:
    for room, is_rejected in (("watch", True), ("domain", False)):
        path = tmp_path / room / "services/greeter/src/gardenbus/greeter" / room / "greetings.py"
        path.parent.mkdir(parents=True)
        path.write_text(f"def greet(document, seed, shoot):\n    return {line}\n")
        assert too_many(tmp_path / room, {}) == ({"greeter/watch": 1} if is_rejected else {})


@pytest.mark.parametrize(
    "line",
    ['{"spec": {}}', 'document["spec"] = {}', 'shoot.get("region")', "seed.spec", 'section(document, "data")'],
)
def test_manifests_that_are_written_and_views_pass(line: str) -> None:
    assert list(accesses(line)) == []
