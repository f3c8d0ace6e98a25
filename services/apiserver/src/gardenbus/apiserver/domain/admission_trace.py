"""Trace of the admission plug-ins on a manifest, for `gardenbus explain apply`: the same chain, recording.

A plug-in that rejects keeps no later one from running, so that all that reject are reported at once; what is raised in
the end is the first, as it would be without a trace. Of a manifest that is invalid, those that would check it are not
reached.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Admit, Change, Mutate, Warn
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden, GardenbusError, InvalidResource

DEFAULTS = "Defaults"
"""Named first: the defaults of a kind, which are no plug-in."""

StepOutcome = Literal["changed", "warned", "refuses", "passed", "not reached"]


class FieldChange(msgspec.Struct, frozen=True):
    """A field before and after; one that was or is not there has no such member."""

    path: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class AdmissionStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """Effect of a plug-in on one manifest."""

    plugin: str
    outcome: StepOutcome
    changes: tuple[FieldChange, ...] = ()
    warnings: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Its reasons for a rejection."""


def field_changes(before: object, after: object, path: str = "") -> Iterator[FieldChange]:
    """Fields in which two values differ: members of maps, entries of lists as long as each other, else whole."""
    if before == after:
        return
    old_entries, new_entries = _entries(before), _entries(after)
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after)
        for name in (*old, *(name for name in new if name not in old)):
            yield from field_changes(old.get(name, msgspec.UNSET), new.get(name, msgspec.UNSET), _member(path, name))
    elif old_entries and new_entries and len(old_entries) == len(new_entries):
        for index, (one, other) in enumerate(zip(old_entries, new_entries, strict=True)):
            yield from field_changes(one, other, f"{path}[{index}]")
    elif before is msgspec.UNSET and isinstance(after, dict) and after:
        yield from field_changes({}, cast("Mapping[str, Any]", after), path)
    else:
        yield FieldChange(path, before, after)


def _entries(value: object) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _member(path: str, name: str) -> str:
    if not path:
        return name
    return f"{path}[{name}]" if "." in name or "/" in name else f"{path}.{name}"


class _PluginTrace:
    """Effects of one plug-in so far."""

    def __init__(self) -> None:
        self.left = 0
        """Functions of it that were not called yet."""
        self.changes: list[FieldChange] = []
        self.warnings: list[str] = []
        self.messages: list[str] = []

    def step(self, plugin: str) -> AdmissionStep:
        return AdmissionStep(
            plugin, self._outcome(), tuple(self.changes), tuple(self.warnings), tuple(dict.fromkeys(self.messages))
        )

    def _outcome(self) -> StepOutcome:
        if self.messages:
            return "refuses"
        if self.changes or self.warnings:
            return "changed" if self.changes else "warned"
        return "not reached" if self.left else "passed"


class AdmissionTrace:
    """A chain that runs another one, and traces each plug-in's effect on the manifest."""

    def __init__(self, admission: Admission) -> None:
        self._plugins = admission.plugins
        self._records: dict[str, _PluginTrace] = {}
        self._rejections: list[GardenbusError] = []
        first = AdmissionPlugin(DEFAULTS, "", (AdmissionRule(mutate=self._begin),))
        last = AdmissionPlugin("", "", (AdmissionRule(admit=self._raise_first),))
        self.admission = Admission((first, *map(self._traced, self._plugins), last))

    def taken(self) -> Sequence[AdmissionStep]:
        """The steps of the last manifest, in the order of the plug-ins; none where it came to no plug-in."""
        steps = tuple(record.step(name) for name, record in self._records.items())
        self._records, self._rejections = {}, []
        return steps

    def _begin(self, document: Document, change: Change, _related: RelatedObjects) -> Document:
        kind = str(document.get("kind"))
        self._records, self._rejections = {DEFAULTS: _PluginTrace()}, []
        self._records[DEFAULTS].changes += field_changes(change.given, document)
        for plugin in self._plugins:
            rules = [rule for rule in plugin.rules if not rule.kinds or kind in rule.kinds]
            functions = [one for rule in rules for one in (rule.mutate, rule.warn, rule.admit) if one is not None]
            if functions:
                record = self._records.setdefault(plugin.name, _PluginTrace())
                record.left += len(functions)
        return document

    def _raise_first(self, _document: Document, _change: Change, _related: RelatedObjects) -> None:
        if self._rejections:
            raise self._rejections[0]

    def _traced(self, plugin: AdmissionPlugin) -> AdmissionPlugin:
        return plugin._replace(rules=tuple(self._traced_rule(plugin.name, rule) for rule in plugin.rules))

    def _traced_rule(self, plugin: str, rule: AdmissionRule) -> AdmissionRule:
        return rule._replace(
            mutate=rule.mutate and self._traced_mutate(plugin, rule.mutate),
            warn=rule.warn and self._traced_warn(plugin, rule.warn),
            admit=rule.admit and self._traced_admit(plugin, rule.admit),
        )

    def _traced_mutate(self, plugin: str, mutate: Mutate) -> Mutate:
        def traced(document: Document, change: Change, related: RelatedObjects) -> Document:
            record = self._called(plugin)
            try:
                mutated = mutate(document, change, related)
            except (Forbidden, InvalidResource) as error:
                record.messages.append(error.message)
                raise
            record.changes += field_changes(document, mutated)
            return mutated

        return traced

    def _traced_warn(self, plugin: str, warn: Warn) -> Warn:
        def traced(document: Document, change: Change, related: RelatedObjects) -> Sequence[str]:
            warnings = warn(document, change, related)
            self._called(plugin).warnings += warnings
            return warnings

        return traced

    def _traced_admit(self, plugin: str, admit: Admit) -> Admit:
        def traced(document: Document, change: Change, related: RelatedObjects) -> None:
            record = self._called(plugin)
            try:
                admit(document, change, related)
            except (Forbidden, InvalidResource) as error:
                record.messages.append(error.message)
                self._rejections.append(error)

        return traced

    def _called(self, plugin: str) -> _PluginTrace:
        record = self._records[plugin]
        record.left -= 1
        return record
