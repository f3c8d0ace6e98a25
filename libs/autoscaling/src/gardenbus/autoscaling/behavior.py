"""Pace of scaling: stabilization windows and policies, as a HorizontalPodAutoscaler's `behavior`.

Recommendations are recorded as values with the moment until which each held. Between two reconciliations the older
value is assumed to have held: after an outage, however long, nothing happens earlier than it would have without.
Source: Kubernetes' `pkg/controller/podautoscaler/horizontal.go`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.api.garden.seed_autoscalers import (
    DISABLED,
    MIN,
    PERCENT,
    Behavior,
    Recommendation,
    ScaleEvent,
    ScalingPolicy,
    ScalingRules,
)


class Windows(msgspec.Struct, frozen=True):
    """Stabilization windows: the lowest (up) and the highest (down) recommendation within them counts."""

    up: timedelta
    down: timedelta

    @classmethod
    def of(cls, behavior: Behavior, default_down: timedelta) -> "Windows":
        """Those stated, or none on the way up and the default on the way down."""
        up, down = behavior.scale_up.stabilization_window_seconds, behavior.scale_down.stabilization_window_seconds
        return cls(timedelta(seconds=up or 0), default_down if down is None else timedelta(seconds=down))


class LimitedReplicas(msgspec.Struct, frozen=True):
    """Replicas after a rule; `recheck_at`: when the rule may give another result, None for never."""

    replicas: int
    recheck_at: datetime | None = None


def recommendations_since(
    past: Sequence[Recommendation], *, last: int | None, recommended: int, current: int, now: datetime, windows: Windows
) -> tuple[Recommendation, ...]:
    """Earlier recommendations that still count beside the present one, the newest last.

    `last` is the previous recommendation; before the first one (None) it is the current size.
    """
    before = current if last is None else last
    remembered_values = [*past, Recommendation(before, now)] if before != recommended else list(past)
    high = low = recommended
    kept: list[Recommendation] = []
    for each in reversed(remembered_values):
        counts_down = each.replicas > high and each.until > now - windows.down
        counts_up = each.replicas < low and each.until > now - windows.up
        if counts_down or counts_up:
            kept.append(each)
            high, low = max(high, each.replicas), min(low, each.replicas)
    return tuple(reversed(kept))


def stabilized(
    current: int, recommended: int, past: Sequence[Recommendation], *, now: datetime, windows: Windows
) -> LimitedReplicas:
    """Replicas after the stabilization windows: scaled no further than every recommendation within them agrees."""
    below = [each for each in past if each.replicas < recommended and each.until > now - windows.up]
    above = [each for each in past if each.replicas > recommended and each.until > now - windows.down]
    low = min([recommended, *(each.replicas for each in below)])
    high = max([recommended, *(each.replicas for each in above)])
    replicas = min(max(current, low), high)
    if replicas == recommended:
        return LimitedReplicas(replicas)
    waits = [each.until + windows.up for each in below] if replicas < recommended else []
    waits += [each.until + windows.down for each in above] if replicas > recommended else []
    return LimitedReplicas(replicas, min(waits, default=None))


def rate_limited(
    current: int, wanted: int, events: Sequence[ScaleEvent], behavior: Behavior, *, now: datetime
) -> LimitedReplicas:
    """`wanted`, or as near to it as the policies of that direction allow now."""
    if wanted == current:
        return LimitedReplicas(wanted)
    grows = wanted > current
    rules = behavior.scale_up if grows else behavior.scale_down
    if rules.select_policy == DISABLED:
        return LimitedReplicas(current)
    bounds = [_bound(policy, current, events, grows=grows, now=now) for policy in rules.policies]
    if not bounds:
        return LimitedReplicas(wanted)
    farthest = max if grows else min
    nearest = min if grows else max
    bound = (nearest if rules.select_policy == MIN else farthest)(bounds)
    allowed = nearest(farthest(bound, current), wanted)
    return LimitedReplicas(allowed, None if allowed == wanted else _period_ends(rules, events, now))


def events_that_count(events: Sequence[ScaleEvent], behavior: Behavior, now: datetime) -> tuple[ScaleEvent, ...]:
    """The changes that some policy still counts."""
    policies = (*behavior.scale_up.policies, *behavior.scale_down.policies)
    longest = timedelta(seconds=max((policy.period_seconds for policy in policies), default=0))
    return tuple(event for event in events if event.at > now - longest)


def _bound(policy: ScalingPolicy, current: int, events: Sequence[ScaleEvent], *, grows: bool, now: datetime) -> int:
    """Bound of a policy, from the size at the beginning of its period; percent of none is one."""
    began_at = now - timedelta(seconds=policy.period_seconds)
    at_first = current - sum(event.change for event in events if event.at > began_at)
    change = policy.value if grows else -policy.value
    if policy.type != PERCENT:
        return at_first + change
    hundredfold = at_first * (100 + change)
    return max(-(-hundredfold // 100), at_first + 1) if grows else hundredfold // 100


def _period_ends(rules: ScalingRules, events: Sequence[ScaleEvent], now: datetime) -> datetime | None:
    ends = (
        event.at + timedelta(seconds=policy.period_seconds)
        for policy in rules.policies
        for event in events
        if event.at > now - timedelta(seconds=policy.period_seconds)
    )
    return min(ends, default=None)
