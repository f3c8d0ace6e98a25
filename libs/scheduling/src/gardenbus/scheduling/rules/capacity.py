"""A seed takes shoots while its usage is below status.allocatable.shoots."""


def problem(usage: int, capacity: int | None) -> str:
    """Why there is no room; "" when there is. A capacity of None has no limit."""
    return "" if capacity is None or usage < capacity else "seed has no capacity left for shoots"
