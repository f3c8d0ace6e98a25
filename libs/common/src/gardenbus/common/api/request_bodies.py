"""Bodies of API requests: what the apiserver reads, clients send and the reference shows."""

from typing import Annotated, Any

import msgspec

from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.list_selectors import ObjectPredicate, list_predicate, required_field, required_labels

LONGEST_TOKEN_SECONDS = 7 * 86_400


class RequestBody(msgspec.Struct, frozen=True, rename="camel"):
    """Base of bodies; other fields pass unread."""


class Selectors(RequestBody, frozen=True):
    """Selectors of a list."""

    label_selector: str = ""
    field_selector: str = ""

    @property
    def seed(self) -> str:
        """The seed whose shoots, or installations, alone can match; "" when it may be any."""
        fields = (("spec", "seedName"), ("status", "seedName"), ("spec", "seedRef", "name"))
        return next(filter(None, (required_field(self.field_selector, *path) for path in fields)), "")

    @property
    def bucket(self) -> str:
        """The BackupBucket whose BackupEntries alone can match; "" when it may be any."""
        return required_field(self.field_selector, "spec", "bucketName")

    @property
    def labels(self) -> frozenset[tuple[str, str]]:
        """Labels with values without which nothing can match. Raises BadRequest."""
        return required_labels(self.label_selector)

    @property
    def selected_name(self) -> str:
        """The name that alone can match; "" when it may be any."""
        return required_field(self.field_selector, "metadata", "name")


class ListRequest(Selectors, frozen=True):
    """Options of a list; an empty body lists the first 500 objects. `continue` is that of the response before."""

    limit: int = 500
    continue_token: str | None = msgspec.field(default=None, name="continue")

    @property
    def matches(self) -> ObjectPredicate | None:
        """Predicate of the selectors; None for all objects."""
        return list_predicate({"labelSelector": self.label_selector, "fieldSelector": self.field_selector})


class NamesRequest(RequestBody, frozen=True):
    """Options of a query for names; at most 500, the first and the last of them always."""

    limit: int = 500
    prefix: str = ""


class WaitingShootsRequest(RequestBody, frozen=True):
    """Options of a query for shoots that wait; an empty body lists the first 1,000, the longest unschedulable first."""

    limit: int = 1000
    namespace: str = ""
    name: str = ""
    classes: bool = False
    """The constraints of equivalence classes come with them."""
    grouped: bool = False
    """They come by their reasons, without their timers: at most 10,000, whatever the limit."""


class MergePatch(RequestBody, frozen=True):
    """A JSON merge patch for an object that the subject does not name."""

    kind: str
    name: str
    patch: dict[str, Any]
    namespace: str = ""


class BindRequest(RequestBody, frozen=True):
    """Target seed of a shoot. `force` moves it without its current seed, which is lost for good."""

    namespace: str
    name: str
    seed: str
    resource_version: str = ""
    force: bool = False

    @property
    def shoot(self) -> ObjectKey:
        """The shoot that is bound."""
        return ObjectKey("shoot", self.namespace, self.name)

    @property
    def seed_key(self) -> ObjectKey:
        """The seed that it is bound to."""
        return ObjectKey("seed", "", self.seed)


class ScaleRequest(RequestBody, frozen=True):
    """Replicas of a ManagedSeedSet; without `replicas` the scale is only read."""

    name: str
    namespace: str = GARDEN_NAMESPACE
    replicas: int | None = None
    resource_version: str = ""

    @property
    def key(self) -> ObjectKey:
        """The set that is scaled."""
        return ObjectKey("managedseedset", self.namespace, self.name)


class HostRequest(RequestBody, frozen=True):
    """The seed that an object runs on, or the agent `member:<cluster>` of a Work."""

    seed: str


class ProceedRequest(RequestBody, frozen=True):
    """The Seeds that a recovery of the store is to wait for no longer."""

    without: tuple[str, ...]


class SigningRequestName(RequestBody, frozen=True):
    """The name of a CertificateSigningRequest; `message` stands in the condition of a decision."""

    name: str
    message: str = ""


class TokenRequest(RequestBody, frozen=True, kw_only=True):
    """The seed or member cluster that a bootstrap token is bound to, and its life. Gardenlets name a seed they host."""

    seed: str = ""
    member: str = ""
    ttl_seconds: Annotated[int, msgspec.Meta(ge=60, le=LONGEST_TOKEN_SECONDS)] = 3600
    description: str = ""


class AdminKubeconfigRequest(RequestBody, frozen=True):
    """The life of an administrator's certificate, at least 600 s and at most a day."""

    expiration_seconds: int = 3600


class EventRequest(RequestBody, frozen=True):
    """An Event about an object: its type is Normal or Warning. `uid`: that of the object, where it is known."""

    reason: str
    message: str = ""
    type: str = "Normal"
    action: str = ""
    uid: str = ""


class AccessReview(Selectors, frozen=True):
    """An action that may be allowed; without verb all that are. `user`: another user, whom operators may name.

    The selectors are those of a list or watch: rights may depend on them.
    """

    verb: str = ""
    kind: str = ""
    name: str = ""
    namespace: str | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
