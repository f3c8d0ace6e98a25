"""Replies of plug-ins about the seeds of a class, as decisions read them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from gardenbus.scheduling.equivalence_classes import Constraints


class PluginInput(NamedTuple):
    """All that a plug-in reads of a shoot: classes with equal inputs share its replies."""

    namespace: str
    purpose: str
    provider: str
    region: str


def input_to_plugins(constraints: Constraints) -> PluginInput:
    """The input of a class."""
    return PluginInput(constraints.namespace, constraints.purpose, constraints.provider, constraints.region)


class PluginReply(msgspec.Struct, frozen=True):
    """The scores of seeds, and the seeds rejected with the reason. A seed without either is let through with 0."""

    scores: Mapping[str, int] = MappingProxyType({})
    rejected: Mapping[str, str] = MappingProxyType({})


NO_REPLY = PluginReply()


class ClassReplies(msgspec.Struct, frozen=True, eq=False):
    """The replies that count for a class, by the name of the score. Another value whenever one of them changes."""

    by_plugin: Mapping[str, PluginReply] = MappingProxyType({})

    def of(self, plugin: str) -> PluginReply:
        """The reply of a plug-in."""
        return self.by_plugin.get(plugin, NO_REPLY)

    def rejection(self, seed: str) -> str:
        """The reason for which the first plug-in by name rejects a seed, with its name; "" where none does."""
        for name, reply in sorted(self.by_plugin.items()):
            if seed in reply.rejected:
                return f"{name.partition('/')[2]}: {reply.rejected[seed]}"
        return ""


NO_REPLIES = ClassReplies()

RepliesByInput = Mapping[PluginInput, ClassReplies]
