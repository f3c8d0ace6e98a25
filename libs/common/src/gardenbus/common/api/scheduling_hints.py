"""Hints of the apiserver to schedulers: shoots that were stored a moment ago and have no seed. PURE.

A hint is sent at most once and may be lost; what must happen is in the queue. So it names shoots, and says nothing of
them: who takes it reads them.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.api.decoding import json_decoder

SHOOTS_MAX = 100
"""Shoots that one hint names at most: as many as one call of the store binds."""


class HintedShoot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shoot that has no seed, and the trace (`traceparent`) of the request that created it."""

    namespace: str
    name: str
    trace: str = ""


class SchedulingHint(msgspec.Struct, frozen=True):
    """Shoots that were created together, for one scheduler name."""

    shoots: Sequence[HintedShoot]


_encode = msgspec.json.Encoder().encode
_decode = json_decoder(SchedulingHint)


def encode_hint(shoots: Sequence[HintedShoot]) -> bytes:
    """The body of a hint."""
    return _encode(SchedulingHint(shoots))


def decode_hint(body: bytes) -> Sequence[HintedShoot]:
    """The shoots of a hint; none of a body that is no hint of this version."""
    try:
        return _decode(body).shoots[:SHOOTS_MAX]
    except msgspec.DecodeError:
        return ()
