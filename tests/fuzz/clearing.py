"""Objects that messages of the fuzzer have created are deleted again, so that what memory is left is a leak's."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

Call = Callable[[str, dict[str, object]], Awaitable[dict[str, Any]]]
"""Makes a request of the API: the rest of its subject and its body; returns the response."""

PAGE = 500
OF_CONTROLLERS = frozenset({"event", "lease"})
"""Kinds that only services write: they bound them."""


class Named(NamedTuple):
    """An object by the words of its kind, namespace ("" without one) and name."""

    kind: str
    namespace: str
    name: str


class Clearing:
    """Deletes what was created since `begin`, once it is more than `most`."""

    def __init__(self, call: Call, most: int) -> None:
        self._call = call
        self._most = most
        self._kept: set[Named] = set()
        self.deleted = 0
        self.outcomes: dict[str, int] = {}
        self.unexpected: list[str] = []

    async def begin(self) -> None:
        """Keep what is there."""
        self._kept = set(await self._objects())

    async def clear(self) -> None:
        """Delete what is too much. A deletion may be rejected, as any other request; not with an unexpected error."""
        created = [each for each in await self._objects() if each not in self._kept]
        if len(created) <= self._most:
            return
        for each in created:
            body: dict[str, object] = {**each._asdict(), "confirm": True}
            response = await self._call("delete", body)
            self.deleted += bool(response["ok"])
            if not response["ok"]:
                self._note(each, response["error"])

    def _note(self, named: Named, error: dict[str, Any]) -> None:
        outcome = f"{error['code']} {error['reason']}"
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if error["code"] == 500:
            self.unexpected.append(f"deletion of {named}: {error['message']}")

    async def _objects(self) -> Sequence[Named]:
        census = await self._call("census", {})
        kinds = [name.removeprefix("objects.") for name in census["result"] if name.startswith("objects.")]
        return [each for kind in kinds if kind not in OF_CONTROLLERS for each in await self._of(kind)]

    async def _of(self, kind: str) -> Sequence[Named]:
        found: list[Named] = []
        query: dict[str, object] = {"limit": PAGE}
        while True:
            response = await self._call(f"list.{kind}", query)
            if not response["ok"]:
                return found
            for item in response["result"]["items"]:
                metadata = item["metadata"]
                found.append(Named(kind, metadata.get("namespace", ""), metadata["name"]))
            after = response["result"].get("metadata", {}).get("continue")
            if not after:
                return found
            query = {"limit": PAGE, "continue": after}
