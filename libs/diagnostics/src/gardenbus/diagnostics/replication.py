"""Copies of what is stored: of streams in a NATS cluster, and of the store at replicas of Redis. Pure."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from gardenbus.diagnostics.findings import DiagnosticFinding, some_of, worst
from gardenbus.diagnostics.stream_states import StreamState

SAFE_COPIES = 3
MOST_LAG_BYTES = 16 * 1024 * 1024
MOST_LAG_SECONDS = 5

REDIS_REPLICAS = "redis-replicas"
"""Metadata of a relay: how far Redis' replicas are (`reported`)."""

Server = TypeVar("Server", bound=Hashable)
"""Address of a server, whose text is shown."""

_SENTINELS, _SENTINELS_AWAY, _OTHERS = "sentinels", "sentinels_away", "other_servers"


def assess_copies(streams: Sequence[StreamState]) -> list[DiagnosticFinding]:
    """Assess leaders and copies of streams; no finding where NATS is a single server."""
    if not any(state.cluster.get("name") for state in streams):
        return []
    found: list[DiagnosticFinding] = []
    if leaderless := [state.name for state in streams if not state.cluster.get("leader")]:
        text = f"{some_of(leaderless)}: no leader, so that nothing is stored there"
        found.append(DiagnosticFinding("nats copies", "failed", text, "start the servers that are away"))
    if behind := [text for state in streams for text in _behind(state)]:
        text = some_of(behind, 3)
        found.append(DiagnosticFinding("nats copies", "warning", text, "nats server report jetstream"))
    if few := [state.name for state in streams if int(state.config.get("num_replicas", 1)) < SAFE_COPIES]:
        text = f"{some_of(few)}: fewer than {SAFE_COPIES} copies, so that a server that goes takes them along"
        found.append(DiagnosticFinding("nats copies", "warning", text, "set GARDENBUS_STREAM_REPLICAS=3"))
    return found or [DiagnosticFinding("nats copies", "ok", f"all are current; {_leaders(streams)}")]


def _leaders(streams: Sequence[StreamState]) -> str:
    leading = Counter(str(state.cluster.get("leader")) for state in streams)
    return ", ".join(f"{server} leads {count} streams" for server, count in sorted(leading.items()))


def _behind(state: StreamState) -> list[str]:
    found: list[str] = []
    replicas: list[dict[str, Any]] = state.cluster.get("replicas") or []
    for replica in replicas:
        name, lag = replica.get("name", "?"), int(replica.get("lag") or 0)
        if replica.get("offline"):
            found.append(f"{state.name}: {name} is away")
        elif not replica.get("current"):
            found.append(f"{state.name}: {name} is {lag} behind")
    return found


def sentinel_facts(found: Mapping[Server, bool], others: Collection[Server] = ()) -> dict[str, str]:
    """Facts beside those of INFO: how many Sentinels there are, which do not respond, and what should be replicas."""
    facts = {_OTHERS: ", ".join(sorted(map(str, others)))} if others else {}
    if not found:
        return facts
    away = sorted(str(sentinel) for sentinel, responds in found.items() if not responds)
    return facts | {_SENTINELS: str(len(found)), _SENTINELS_AWAY: ", ".join(away)}


def assess_replicas(info: Mapping[str, str], demanded: int = 0) -> list[DiagnosticFinding]:
    """Assess the replicas of a Redis primary by its INFO and `sentinel_facts`, the worst finding first.

    `demanded` is its `min-replicas-to-write`, where that is readable. None where it has, and wants, no replicas.
    """
    replicas = [_fields(info[key]) for key in sorted(info) if key.startswith("slave") and key[5:].isdigit()]
    if info.get("role") != "master" or not (replicas or "min_slaves_good_slaves" in info):
        return []
    others = {each for each in info.get(_OTHERS, "").split(", ") if each}
    if (good := int(info.get("min_slaves_good_slaves", demanded))) < demanded:
        text = f"{good} of {demanded} that min-replicas-to-write demands are connected: it rejects writes (NOREPLICAS)"
        suggestion = f"start the others, or redis-cli CONFIG SET min-replicas-to-write {good}; what waits goes on then"
        return [DiagnosticFinding("redis replicas", "failed", text, suggestion), *_of_sentinels(info)]
    found = [_of_replicas(replicas, int(info.get("master_repl_offset", "0")), others), *_of_sentinels(info)]
    state = worst(found)
    return sorted(found, key=lambda finding: finding.state != state)


def _of_replicas(replicas: Sequence[Mapping[str, str]], end: int, others: Collection[str]) -> DiagnosticFinding:
    if not replicas:
        text = "none is connected: writes are rejected, or are lost with this server"
        return DiagnosticFinding("redis replicas", "failed", text, "start a replica; redis-cli INFO replication")
    if (missing := len(others) - len(replicas)) > 0:
        away = sorted(set(others) - {f"{replica.get('ip')}:{replica.get('port')}" for replica in replicas})
        text = some_of(away) if len(away) == missing else f"{missing} of {len(others)}"
        text = f"{text}: not connected, so that what is written has fewer copies"
        suggestion = "look at its log and its disk; SENTINEL RESET forgets a replica that is gone for good"
        return DiagnosticFinding("redis replicas", "warning", text, suggestion)
    shown = [_shown(replica, end) for replica in replicas]
    slow = [text for text, replica in zip(shown, replicas, strict=True) if _is_behind(replica, end)]
    if slow:
        return DiagnosticFinding("redis replicas", "warning", some_of(slow), "redis-cli INFO replication")
    return DiagnosticFinding("redis replicas", "ok", ", ".join(shown))


def _of_sentinels(info: Mapping[str, str]) -> list[DiagnosticFinding]:
    """A finding for Sentinels that do not respond: without a majority of them no replica becomes the primary."""
    away = [each for each in info.get(_SENTINELS_AWAY, "").split(", ") if each]
    if not away:
        return []
    number = int(info[_SENTINELS])
    has_majority = (number - len(away)) * 2 > number
    effect = "a majority is there" if has_majority else "no replica becomes the primary, should the primary go"
    text = f"{len(away)} of {number} do not respond ({some_of(away)}): {effect}"
    return [DiagnosticFinding("redis sentinels", "warning" if has_majority else "failed", text, "start them")]


def reported(finding: DiagnosticFinding) -> str:
    """A finding about replicas as a relay reports it to those that have no connection to Redis."""
    return msgspec.json.encode(finding).decode()


def reported_replicas(services: Sequence[Mapping[str, Any]], prefix: str) -> list[DiagnosticFinding]:
    """The worst finding that relays of a landscape report, by the responses to PING: each sees the same servers."""
    found: list[DiagnosticFinding] = []
    for service in services:
        metadata: Mapping[str, str] = service.get("metadata") or {}
        if service.get("name") == "relay" and metadata.get("prefix") == prefix and metadata.get(REDIS_REPLICAS):
            with suppress(msgspec.MsgspecError):  # of another version
                found.append(msgspec.json.decode(metadata[REDIS_REPLICAS], type=DiagnosticFinding))
    state = worst(found)
    return [each for each in found if each.state == state][:1]


def _fields(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _lag_bytes(replica: Mapping[str, str], end: int) -> int:
    return max(0, end - int(replica.get("offset", "0")))


def _is_behind(replica: Mapping[str, str], end: int) -> bool:
    is_slow = int(replica.get("lag", "0")) > MOST_LAG_SECONDS or _lag_bytes(replica, end) > MOST_LAG_BYTES
    return replica.get("state") != "online" or is_slow


def _shown(replica: Mapping[str, str], end: int) -> str:
    return (
        f"{replica.get('ip')}:{replica.get('port')} {replica.get('state')}, {_lag_bytes(replica, end):,} bytes behind"
    )
