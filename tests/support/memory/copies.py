"""Copies of tables: deep in containers and dataclasses that change, flat in values that never do."""

import dataclasses
from collections import defaultdict
from typing import Any, cast


def copied_table(value: Any) -> Any:
    """A copy that shares nothing with the original that either may change."""
    if isinstance(value, defaultdict):
        table = cast("defaultdict[Any, Any]", value)
        return defaultdict(table.default_factory, {key: copied_table(each) for key, each in table.items()})
    if isinstance(value, dict):
        return {key: copied_table(each) for key, each in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, set)):
        return cast("list[Any] | set[Any]", value).copy()
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not _is_frozen(value):
        fields = {field.name: copied_table(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return type(value)(**fields)
    return value


def _is_frozen(value: Any) -> bool:
    return bool(cast("Any", type(value)).__dataclass_params__.frozen)
