"""Mutants of the product: functions with others in their place, for the time of some tests that have to notice."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from gardenbus.common.adapters.redis.function_library import Library, join_files, texts
from tests.support.memory import connection as memory_connection


def changed_functions(*changes: tuple[str, str]) -> tuple[Any, str, Library]:
    """The store's functions with other lines, in the place of those that a store in memory loads."""
    files = dict(texts())
    for line, other in changes:
        (name,) = (name for name, text in files.items() if line in text)
        assert files[name].count(line) == 1, f"{line} stands in {name} more than once"
        files[name] = files[name].replace(line, other)
    return memory_connection, "LIBRARY", join_files(files)


class Mutant(NamedTuple):
    """Functions with what is put in their place. `restores`: servers that have to go back in time to find it."""

    changes: Sequence[tuple[Any, str, Any]]
    restores: Sequence[str] | None = None

    @contextmanager
    def applied(self) -> Generator[None]:
        """For as long as the context."""
        with ExitStack() as stack:
            for where, name, function in self.changes:
                stack.enter_context(patch.object(where, name, function))
            yield
