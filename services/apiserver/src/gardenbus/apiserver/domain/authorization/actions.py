"""Actions, their requesters, and the outcomes of a decision."""

from typing import NamedTuple

from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import by_word
from gardenbus.common.api.users import ANONYMOUS
from gardenbus.common.errors import Forbidden

READS = frozenset({"get", "list", "watch", "explain"})
WRITES = frozenset({"create", "apply", "update", "patch", "delete"})
"""`apply` creates or updates, and whoever may not do both does not learn which of them it would have been."""

BIND = "bind"
"""The verb of Gardener's subresource `shoots/binding`: decide on a shoot's seed."""

UPDATE_STATUS = "update-status"
"""The verb of the subresource `status`: gardenlets and controllers report it, and operators may."""

TRUSTED_INSIDERS = frozenset({ANONYMOUS, OPERATOR, "identity"})
"""Users of the services' account that may do everything. Who is there and names no user is the operator, by the
permission table; `identity` can let in anybody as anybody anyway."""

CONTROLLER_MANAGER = "controllermanager"


class Action(NamedTuple):
    """A verb on a kind: on one object, on those of a namespace, or (None) of all namespaces.

    Without kind it is a request about the landscape, as `census`.
    """

    verb: str
    kind: str = ""
    namespace: str | None = ""
    name: str = ""
    seed: str = ""
    """Of a list: the seed whose shoots alone are requested."""
    labels: frozenset[tuple[str, str]] = frozenset()
    """Of a list: labels without which nothing is listed."""

    @classmethod
    def on(cls, verb: str, key: ObjectKey) -> "Action":
        """An action on one object."""
        return cls(verb, key.kind, key.namespace, key.name)

    @property
    def key(self) -> ObjectKey:
        """The object; without name for a list."""
        return ObjectKey(self.kind, self.namespace or "", self.name)

    @property
    def project_namespace(self) -> str:
        """The namespace whose Project decides on this; "" where none does."""
        return self.name if self.kind == "namespace" else self.namespace or ""

    def __str__(self) -> str:
        """`delete shoots in namespace "garden-dev"`, as Kubernetes says it."""
        if not self.kind:
            return f"request {self.verb}"
        what = f"{self.verb} {by_word(self.kind, (self.kind,)).plural}"
        if self.namespace is None:
            return f"{what} in all namespaces"
        return f'{what} in namespace "{self.namespace}"' if self.namespace else what


class Requester(NamedTuple):
    """A user, as the server has proved it, with groups that come with the credential.

    `is_insider`: the request comes from the services' account, where only the operator speaks for others.
    """

    user: str
    is_insider: bool = False
    groups: frozenset[str] = frozenset()
    request_id: str = ""
    """Identifies the request in the audit log."""

    @property
    def is_trusted(self) -> bool:
        """True for requesters who may do everything."""
        return self.is_insider and self.user in TRUSTED_INSIDERS

    @property
    def is_controller(self) -> bool:
        """True for the controller manager itself: what it deletes nobody has decided to."""
        return self.is_insider and self.user == CONTROLLER_MANAGER


class Permit(NamedTuple):
    """An action is allowed.

    `verbs`: the custom verbs that the requester has besides; None: all of them. `readable`: the kinds in the namespace
    to which what is written may refer; None: all of them.
    """

    verbs: frozenset[str] | None = frozenset()
    readable: frozenset[str] | None = None

    def has(self, verb: str) -> bool:
        """True when a custom verb is allowed."""
        return self.verbs is None or verb in self.verbs


UNLIMITED = Permit(None)


class MissingVerb(Forbidden):
    """A change takes a verb that its requester does not have, whatever other objects there are."""


class Rejection(NamedTuple):
    """An action is not allowed: the rule by its name, and what would be needed."""

    rule: str
    detail: str
