"""A Seed read in one pass gives the row that its document gives, whatever it holds."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.garden.decoded_seeds import decode_seed_row
from gardenbus.common.api.garden.rows import seed_row

TEXTS = st.sampled_from(["", "a", "aws", "True", "GardenletReady", "2026-01-02T03:04:05Z", "12", "1k", "1500m", "ü"])
CONDITIONS = st.sampled_from(["GardenletReady", "BackupBucketsReady", "other"])
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(-1, 1), TEXTS, st.lists(TEXTS, max_size=2))
MAPS = st.dictionaries(st.sampled_from(["set", "seed.example.com/cordoned-by", "other"]), TEXTS, max_size=2)


def fields(**each: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A section with some of these fields, each now and then of a shape that it does not have."""
    optional = {name: st.one_of(values, values, values, ANYTHING) for name, values in each.items()}
    return st.fixed_dictionaries({}, optional=optional)


SEEDS = st.fixed_dictionaries(
    {"metadata": fields(name=TEXTS, resourceVersion=TEXTS, deletionTimestamp=TEXTS, annotations=MAPS, labels=MAPS)},
    optional={
        "spec": fields(
            provider=fields(type=TEXTS, region=TEXTS, zones=st.lists(TEXTS, max_size=3)),
            settings=fields(scheduling=fields(visible=st.booleans())),
            backup=st.dictionaries(TEXTS, TEXTS, max_size=1),
            taints=st.lists(fields(key=TEXTS), max_size=2),
        ),
        "status": fields(
            conditions=st.lists(fields(type=CONDITIONS, status=TEXTS, reason=TEXTS, message=TEXTS), max_size=3),
            allocatable=fields(shoots=st.one_of(TEXTS, st.integers(0, 10**20), st.just("9" * 20))),
        ),
    },
)


@given(SEEDS)
def test_both_ways_to_read_a_seed_give_the_same_row(document: dict[str, object]) -> None:
    assert decode_seed_row(msgspec.json.encode(document)) == seed_row(document)


@given(st.binary(max_size=20))
def test_what_is_no_object_has_no_row_and_stops_nobody(body: bytes) -> None:
    row = decode_seed_row(body)
    assert row is None or not row.name
