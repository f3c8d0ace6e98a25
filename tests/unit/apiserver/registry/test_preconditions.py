"""What a request may depend on."""

import pytest

from gardenbus.apiserver.registry.preconditions import Precondition, guards_of, keys_of, precondition_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import WritePrecondition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("managedseedset.garden.grove=7", Precondition(ObjectKey("managedseedset", "garden", "grove"), 7)),
        (" seed._.aws = 0 ", Precondition(ObjectKey("seed", "", "aws"), 0)),
        ("cloudprofile._.aws.v1=12", Precondition(ObjectKey("cloudprofile", "", "aws.v1"), 12)),
        ("", None),
    ],
)
def test_a_condition_is_read_from_its_header(text: str, condition: Precondition | None) -> None:
    assert precondition_of({"Gardenbus-Condition": text}) == condition
    assert precondition_of({}) is None


@pytest.mark.parametrize(
    "text", ["x", "=5", "seed.aws=5", "seed._.aws=", "seed._.aws=٣", "seed._.aws=5.0", "a.b.c=" + "9" * 30]
)
def test_a_malformed_condition_is_named(text: str) -> None:
    with pytest.raises(BadRequest, match="Gardenbus-Condition"):
        precondition_of({"Gardenbus-Condition": text})


def test_a_condition_guards_its_object_in_the_store() -> None:
    condition = Precondition(ObjectKey("seed", "", "aws"), 5)
    assert guards_of(condition) == (
        WritePrecondition("version", "seed:_:aws", "seed aws has changed meanwhile", version=5),
    )
    assert keys_of(condition) == (condition.key,)
    assert guards_of(None) == keys_of(None) == ()
