"""Connections beyond their user's budget are found: their number, what they do not read, and what they send at once."""

from msgspec.structs import replace

from gardenbus.common.api.budgets import DEFAULT_BUDGET, Budget
from gardenbus.common.errors import Forbidden
from gardenbus.identity.domain.connection_loads import (
    DRAINED_BYTES_A_SECOND,
    MOST_PENDING_BYTES,
    UNREAD_SECONDS,
    ConnectionLoads,
    at_once,
)
from gardenbus.identity.ports.system_account import ConnectionLoad, ServerConnection

BUDGET = replace(DEFAULT_BUDGET, connections=3)
MOST = at_once(BUDGET)


def a_load(number: int, *, user: str = "ann", pending: int = 0, received: int = 0, server: str = "S") -> ConnectionLoad:
    return ConnectionLoad(ServerConnection(server, number, user), pending, received)


def loads_of(budget: Budget = BUDGET) -> ConnectionLoads:
    return ConnectionLoads(lambda _: budget)


def rejection(loads: ConnectionLoads, user: str, now: float) -> str:
    """Why a connection is not let in; empty if it is."""
    try:
        loads.admit(user, now)
    except Forbidden as error:
        return error.message
    return ""


def closed(loads: ConnectionLoads, now: float, *open_ones: ConnectionLoad, ended: tuple[ConnectionLoad, ...] = ()):
    return sorted(excess.connection.number for excess in loads.observe(open_ones, ended, now))


def test_the_youngest_beyond_the_number_are_closed_and_nobody_elses() -> None:
    loads = loads_of()
    assert closed(loads, 0.0, *(a_load(number) for number in (7, 3, 9, 5)), a_load(8, user="bob")) == [9]


def test_no_other_is_let_in_beyond_the_number_before_and_after_an_observation() -> None:
    loads = loads_of()
    assert [rejection(loads, "ann", 0.0) for _ in range(3)] == ["", "", ""]
    assert "3 connections" in rejection(loads, "ann", 0.0)
    assert not rejection(loads, "bob", 0.0)
    loads.observe([a_load(1), a_load(2)], [], 1.0)
    assert not rejection(loads, "ann", 1.0)
    assert "3 connections" in rejection(loads, "ann", 1.0)


def test_those_that_read_least_are_closed_until_the_others_are_within_the_bound() -> None:
    half = MOST_PENDING_BYTES // 2
    assert closed(loads_of(), 0.0, a_load(1, pending=half), a_load(2, pending=half)) == []
    assert closed(loads_of(), 0.0, a_load(1, pending=half), a_load(2, pending=half + 1), a_load(3)) == [2]


def test_who_reads_too_little_is_out_for_a_while() -> None:
    loads = loads_of()
    assert closed(loads, 0.0, a_load(1, pending=MOST_PENDING_BYTES + 1), a_load(5, user="bob")) == [1]
    assert closed(loads, 1.0, a_load(5, user="bob")) == []
    assert "unread" in rejection(loads, "ann", UNREAD_SECONDS - 1)
    assert not rejection(loads, "bob", UNREAD_SECONDS - 1)
    assert not rejection(loads, "ann", UNREAD_SECONDS)


def test_who_sends_too_much_at_once_is_out_until_half_of_it_has_drained() -> None:
    loads = loads_of()
    loads.observe([a_load(1, received=2**40), a_load(5, user="bob")], [], 0.0)  # sent before anybody looked
    assert closed(loads, 1.0, a_load(1, received=2**40 + MOST), a_load(5, user="bob")) == []
    assert closed(loads, 1.1, a_load(1, received=2**40 + 2 * MOST), a_load(2), a_load(5, user="bob")) == [1, 2]
    assert "at once" in rejection(loads, "ann", 1.1)
    assert not rejection(loads, "bob", 1.1)
    drained = 1.1 + 1.5 * MOST / DRAINED_BYTES_A_SECOND
    assert rejection(loads, "ann", drained - 1)
    assert not rejection(loads, "ann", drained + 1)


def test_what_ended_between_two_observations_counts_once() -> None:
    loads = loads_of()
    loads.observe([a_load(1)], [], 0.0)
    short = tuple(a_load(number, received=MOST // 3) for number in (2, 3))
    assert closed(loads, 0.1, a_load(1), ended=short) == []
    assert closed(loads, 0.2, a_load(1), ended=short) == []
    assert closed(loads, 0.3, a_load(1), ended=(*short, a_load(4, received=MOST // 2))) == [1]


def test_a_server_that_was_silent_for_a_while_is_not_counted_again() -> None:
    loads = loads_of()
    loads.observe([a_load(1, received=MOST), a_load(1, server="T", user="bob")], [], 0.0)
    loads.observe([a_load(1, server="T", user="bob")], [], 1.0)
    assert closed(loads, 2.0, a_load(1, received=MOST + 1), a_load(1, server="T", user="bob")) == []


def test_a_steady_sender_below_the_rate_is_never_closed() -> None:
    loads = loads_of()
    for second in range(1000):
        assert closed(loads, float(second), a_load(1, received=second * (DRAINED_BYTES_A_SECOND - 1))) == []
