"""Plans for emptying a seed against the most shoots that any plan could move."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.moves import Move
from gardenbus.scheduling.descheduling.relocation import plan_moves
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged

TIERS = ("x", "y", "z")
BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}


class Case:
    """Seeds with tiers and room, and shoots on `source` that want a tier, or none."""

    def __init__(self, seeds: Sequence[tuple[frozenset[str], int, bool]], wanted: Sequence[str | None]) -> None:
        self.room = {f"s{number}": room for number, (_, room, _) in enumerate(seeds)}
        self.tiers = {f"s{number}": tiers for number, (tiers, _, _) in enumerate(seeds)}
        self.backed = {f"s{number}" for number, (_, _, has_backup) in enumerate(seeds) if has_backup}
        self.wanted = {f"shoot-{number}": tier for number, tier in enumerate(wanted)}

    def may(self, shoot: str, seed: str) -> bool:
        tier = self.wanted[shoot]
        return seed in self.backed and (tier is None or tier in self.tiers[seed])

    def documents(self) -> list[Document]:
        source = merged(
            a_seed("source", shoots=100), merged(BACKUP, {"metadata": {"labels": dict.fromkeys(TIERS, "")}})
        )
        seeds = [
            merged(
                a_seed(name, shoots=str(self.room[name])),
                merged(BACKUP if name in self.backed else {}, {"metadata": {"labels": dict.fromkeys(tiers, "")}}),
            )
            for name, tiers in self.tiers.items()
        ]
        return [a_project(), a_cloudprofile(), source, *seeds, *self.shoots()]

    def shoots(self) -> list[Document]:
        return [
            a_shoot(
                name,
                spec={
                    "seedName": "source",
                    "seedSelector": None
                    if tier is None
                    else {"matchExpressions": [{"key": tier, "operator": "Exists"}]},
                },
                status={"seedName": "source"},
            )
            for name, tier in self.wanted.items()
        ]


cases = st.builds(
    Case,
    st.lists(
        st.tuples(st.frozensets(st.sampled_from(TIERS)), st.integers(0, 3), st.sampled_from([True, True, False])),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.sampled_from([None, *TIERS]), max_size=8),
)


def most_moves(case: Case) -> int:
    """How many shoots can move at most: states are the rooms left."""
    states: Mapping[tuple[int, ...], int] = {tuple(case.room.values()): 0}
    for shoot in case.wanted:
        following = dict(states)
        for rooms, moved in states.items():
            for place, seed in enumerate(case.room):
                if rooms[place] and case.may(shoot, seed):
                    left = (*rooms[:place], rooms[place] - 1, *rooms[place + 1 :])
                    following[left] = max(following.get(left, 0), moved + 1)
        states = following
    return max(states.values())


@settings(max_examples=200, deadline=None)
@given(cases)
def test_as_many_shoots_move_as_any_plan_could_move(case: Case):
    plan = plan_moves(case.shoots(), snapshot_of(case.documents()), source="source")

    moves = [each for each in plan if isinstance(each, Move)]
    taken = Counter(move.target for move in moves)
    assert all(taken[seed] <= case.room[seed] for seed in taken)
    assert all(case.may(move.name, move.target) for move in moves)
    assert len({each.name for each in plan}) == len(plan) == len(case.wanted)
    assert len(moves) == most_moves(case)
