"""What a request may depend on."""

import pytest

from gardenbus.apiserver.reconcilers.preconditions import Condition, condition_in, guards_of, keys_of
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.keys import ObjectKey


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("managedseedset.garden.grove=7", Condition(ObjectKey("managedseedset", "garden", "grove"), 7)),
        (" seed._.aws = 0 ", Condition(ObjectKey("seed", "", "aws"), 0)),
        ("cloudprofile._.aws.v1=12", Condition(ObjectKey("cloudprofile", "", "aws.v1"), 12)),
        ("", None),
    ],
)
def test_a_condition_is_read_from_its_header(text: str, condition: Condition | None) -> None:
    assert condition_in({"Gardenbus-Condition": text}) == condition
    assert condition_in({}) is None


@pytest.mark.parametrize(
    "text", ["x", "=5", "seed.aws=5", "seed._.aws=", "seed._.aws=٣", "seed._.aws=5.0", "a.b.c=" + "9" * 30]
)
def test_a_malformed_condition_is_named(text: str) -> None:
    with pytest.raises(BadRequest, match="Gardenbus-Condition"):
        condition_in({"Gardenbus-Condition": text})


def test_a_condition_guards_its_object_in_the_store() -> None:
    condition = Condition(ObjectKey("seed", "", "aws"), 5)
    assert guards_of(condition) == (Guard("version", "seed:_:aws", "seed aws has changed meanwhile", version=5),)
    assert keys_of(condition) == (condition.key,)
    assert guards_of(None) == keys_of(None) == ()
