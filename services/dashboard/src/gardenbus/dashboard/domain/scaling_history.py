"""History of an autoscaler's desired and current number of seeds. Pure.

It is not stored: it begins with the Events of the last day (`New size: 3; reason: …`), and continues with every
observed change of the autoscaler's status. The newest samples are kept, up to a limit.
"""

import re
from collections.abc import Sequence

import msgspec

from gardenbus.common.api.garden.rows import AutoscalerRow

LARGEST = 2_000
"""Samples kept of one autoscaler."""

_NEW_SIZE = re.compile(r"New size: (?P<size>\d+)(; reason: (?P<reason>.*))?", re.DOTALL)


class Sample(msgspec.Struct, frozen=True, rename="camel"):
    """One moment. `at` is RFC 3339; `reason` is the cause of the change, where there is one."""

    at: str
    desired: int | None
    current: int | None = None
    pending: int | None = None
    reason: str = ""


def rescaled(message: str, at: str) -> Sample | None:
    """Return the sample in an Event about a changed size; None when it is about anything else."""
    found = _NEW_SIZE.match(message)
    return Sample(at, int(found["size"]), reason=found["reason"] or "") if found else None


def with_row(samples: Sequence[Sample], row: AutoscalerRow, at: str) -> list[Sample]:
    """Return the samples with an autoscaler's present state; the same ones when nothing changed."""
    new = Sample(at, row.desired, row.current, row.pending_shoots, row.reason)
    if row.desired is None:
        return list(samples)
    if samples and _numbers(samples[-1]) == _numbers(new):
        return list(samples)
    return [*samples, new][-LARGEST:]


def with_event(samples: Sequence[Sample], sample: Sample) -> list[Sample]:
    """Return the samples with that of an Event, in order of time."""
    if any(each.at == sample.at and each.desired == sample.desired for each in samples):
        return list(samples)
    return sorted([*samples, sample], key=lambda each: each.at)[-LARGEST:]


def _numbers(sample: Sample) -> tuple[int | None, ...]:
    return sample.desired, sample.current, sample.pending
