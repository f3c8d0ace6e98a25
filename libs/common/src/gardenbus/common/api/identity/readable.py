"""Rights to read of somebody, as the apiserver states it: for those who show what they follow to people.

The decision is the apiserver's alone (its `authorization`); this is its outcome for every kind and namespace.
"""

from collections.abc import Mapping

import msgspec

from gardenbus.common.api.kinds import CONFIDENTIAL, KINDS

WHOLE_LANDSCAPE = frozenset({"operator", "viewer"})
"""Roles that read everything but what holds credentials."""


class Readable(msgspec.Struct, frozen=True, kw_only=True):
    """Kinds by their singular. `role` is the one in the landscape, "user" without one."""

    role: str = "user"
    kinds: frozenset[str] = frozenset()
    """Read wherever they are."""
    namespaces: Mapping[str, frozenset[str]] = {}
    """Further kinds, by namespace; its Namespace is read too."""
    projects: frozenset[str] = frozenset()
    """Names of the Projects."""

    @property
    def is_whole(self) -> bool:
        """True for those who read everything that the dashboard follows."""
        return self.role in WHOLE_LANDSCAPE

    @property
    def is_operators(self) -> bool:
        """True for operators, who may look at servers and streams."""
        return self.role == "operator"

    @property
    def has_role(self) -> bool:
        """True for whoever has a role in the landscape or in a Project."""
        return self.is_whole or bool(self.namespaces) or bool(self.projects)

    def allows(self, kind: str, namespace: str, name: str) -> bool:
        """True when an object may be read."""
        if kind in self.kinds:
            return True
        match kind:
            case "project":
                return name in self.projects
            case "namespace":
                return name in self.namespaces
            case _:
                return kind in self.namespaces.get(namespace, ())


EVERYTHING = Readable(role="operator", kinds=frozenset(KINDS) - CONFIDENTIAL)
"""Kinds shown where users are not distinguished."""
