"""Error that the API responds with."""

from typing import Any

from gardenbus.common.errors import GardenbusError


class ApiError(GardenbusError):
    """Error of the API; `error` is its body."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message") or error))
        self.error = error
