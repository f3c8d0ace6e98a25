"""What is wrong in a stored object, and unchanged, stands in the way of no other change, of any kind."""

import copy
from typing import Any, cast

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource
from tests.support.valid_manifests import SEED, SHOOT, VALID
from tests.unit.api.test_rules_by_kind import changed, fields_of

ZONES = "spec.provider.zones"
TOLERATIONS = "spec.tolerations"
KEY = {"key": "seed.gardener.cloud/protected"}


def with_note(document: Document) -> Document:
    return changed(document, "metadata.annotations.note", "another")


def test_a_stored_seed_with_doubled_zones_takes_an_unrelated_change_and_no_further_doubled_zone():
    stored = changed(SEED, ZONES, ["a", "a", "b"])
    assert fields_of(stored)

    assert fields_of(with_note(stored), stored) == []
    assert fields_of(changed(stored, ZONES, ["b", "a", "a"]), stored) == []
    assert fields_of(changed(stored, ZONES, ["a", "a", "b", "b"]), stored) != []
    assert fields_of(changed(stored, ZONES, ["a", "b", "b"]), stored) != []


def test_a_stored_shoot_with_doubled_tolerations_takes_an_unrelated_change_and_no_further_doubled_one():
    stored = changed(SHOOT, TOLERATIONS, [KEY, KEY])
    assert fields_of(stored)

    assert fields_of(with_note(stored), stored) == []
    assert fields_of(changed(stored, TOLERATIONS, [KEY, KEY, KEY]), stored) != []
    assert fields_of(changed(SHOOT, TOLERATIONS, [KEY, KEY]), SHOOT) != []


def leaves(value: Any, path: str) -> list[str]:
    """Paths of all scalars of a document below spec and data, with dots between."""
    if isinstance(value, dict):
        members = cast("Document", value)
        return [each for key, part in members.items() if "." not in key for each in leaves(part, f"{path}.{key}")]
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        return [each for index, part in enumerate(entries) for each in leaves(part, f"{path}.{index}")]
    return [path]


@pytest.mark.parametrize("document", VALID, ids=lambda document: document["kind"])
def test_whatever_field_is_wrong_in_a_stored_object_an_unrelated_change_is_accepted(document: Document):
    tried = 0
    for part in ("spec", "data", "webhooks"):
        for path in leaves(document.get(part, {}), part):
            for wrong in ("?!" * 200, -7, ["x"], {"x": "y"}):
                stored = changed(document, path, wrong)
                if not fields_of(stored):
                    continue
                tried += 1
                assert fields_of(with_note(copy.deepcopy(stored)), stored) == [], (path, wrong)
    assert tried or not {"spec", "webhooks"} & document.keys()


def test_more_problems_than_are_shown_hide_none_that_is_new():
    stored = changed(SEED, "spec.taints", [{"key": number} for number in range(150)])
    assert len(fields_of(stored)) == 100
    assert fields_of(with_note(stored), stored) == []

    with pytest.raises(InvalidResource) as raised:
        validate(changed(stored, "spec.provider.region", 7), stored)

    assert [each.field for each in raised.value.problems] == ["spec.provider.region"]
