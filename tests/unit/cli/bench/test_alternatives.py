"""How two ways of doing something are set against each other."""

from gardenbus.cli.bench.alternatives.spending import HEAD, Size, Spent, alternate, as_line, compared


async def test_means_take_turns_in_opposite_orders_after_a_round_that_warms_up() -> None:
    called: list[str] = []

    async def one() -> Spent:
        called.append("one")
        return Spent(1, 1.0, 0.0, 0.0)

    async def other() -> Spent:
        called.append("other")
        return Spent(1, 1.0, 0.0, 0.0)

    taken = await alternate(Size(rounds=2), {"one": one, "other": other})
    assert called == ["other", "one", "one", "other", "other", "one"]
    assert {name: len(spent) for name, spent in taken.items()} == {"one": 2, "other": 2}


def test_ratios_above_one_speak_for_ours() -> None:
    taken = {
        "quick": [Spent(100, 0.5, 0.01, 0.02), Spent(100, 1.0, 0.01, 0.02)],
        "slow": [Spent(100, 1.0, 0.02, 0.04), Spent(100, 4.0, 0.02, 0.04)],
    }
    row = compared("work", taken, ours="quick", other="slow", unit="messages", kept="quick")
    assert row.ratio == 3.0  # the median of the rounds' own ratios, 2 and 4
    assert round(row.cpu_ratio, 6) == 2.0
    assert (row.ours.per_s, round(row.ours.client_us), round(row.ours.server_us)) == (150.0, 100, 200)


def test_a_row_has_as_many_cells_as_the_head() -> None:
    taken = {"ours": [Spent(2000, 0.5, 0.001, 0.0)], "other": [Spent(2000, 1.0, 0.7, 0.0)]}
    line = as_line(compared("work", taken, ours="ours", other="other", unit="messages", kept="ours"))
    assert line == "| work | ours: 4,000/s, 0.5 µs | other: 2,000/s, 350 µs | messages | 2 | 700 | ours |\n"
    assert {each.count("|") for each in HEAD.splitlines()} == {line.count("|")}


def test_counts_shrink_with_the_size_but_never_to_nothing() -> None:
    assert Size(share=0.01).of(20_000) == 200
    assert Size(share=0.01).of(10) == 1
