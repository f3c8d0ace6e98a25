"""How long a failed operation waits: doubling, with a cap, half of it drawn by lot."""

BASE_SECONDS = 1.0
CAP_SECONDS = 300.0
_LARGEST_EXPONENT = 32


def backoff_seconds(
    attempts: int, lot: float, *, base_seconds: float = BASE_SECONDS, cap_seconds: float = CAP_SECONDS
) -> float:
    """Seconds after the `attempts`-th failure (from 1): between half and all of base x 2^(attempts-1), at most cap.

    `lot` is drawn from [0, 1). The exponent is bounded, as a float would overflow after some thousand failures.
    """
    full = min(cap_seconds, base_seconds * 2 ** min(max(attempts, 1) - 1, _LARGEST_EXPONENT))
    return full / 2 + full / 2 * lot
