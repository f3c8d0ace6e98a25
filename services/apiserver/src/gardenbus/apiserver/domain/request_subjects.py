"""Subjects of requests and reports, parsed and built."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.identity.names import user_of_token
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey, Subjects
from gardenbus.common.api.kinds import by_word
from gardenbus.common.api.users import ANONYMOUS
from gardenbus.common.api.verbs import VERBS
from gardenbus.common.errors import BadRequest, Unsupported

Origin = Literal["nobody", "insider", "outsider"]
"""Sender of a request by its subject in the services' account.

| subject              | origin     | published by                                                          |
|----------------------|------------|-----------------------------------------------------------------------|
| `garden.<tail>`      | `nobody`   | the operator, and services that the operator's rights are granted to   |
| `garden.as.<u>.…`    | `insider`  | services in their own names, the dashboard and the operator for others |
| `garden.out.<u>.…`   | `outsider` | `<u>`, from the other account: nothing else reaches this one from there |
"""

_ORIGINS: Mapping[str, Origin] = {"as": "insider", "out": "outsider"}


class RequestSubject(NamedTuple):
    """User of a request, and its subject behind `garden.` or `garden.as.<user>.` (`api.get.shoot.dev.a`)."""

    user: str
    tail: str
    origin: Origin = "outsider"

    @property
    def is_insider(self) -> bool:
        """True for a subject that nobody outside the services' account can publish on."""
        return self.origin != "outsider"


class ListTarget(NamedTuple):
    """Kind and namespace of a list; namespace None is all of them."""

    kind: str
    namespace: str | None


def parse_request_subject(subject: str, subjects: Subjects) -> RequestSubject:
    """Parse a request's subject. Raises BadRequest for a user whose name nobody carries."""
    tail = subject.removeprefix(f"{subjects.prefix}.")
    word, _, named = tail.partition(".")
    origin = _ORIGINS.get(word)
    if origin is None:
        return RequestSubject(ANONYMOUS, tail, "nobody")
    user, _, rest = named.partition(".")
    return RequestSubject(user_of_token(user), rest, origin)


def api_filters(subjects: Subjects) -> tuple[str, ...]:
    """The subjects of API requests, with and without a user."""
    return (subjects.api(">"), subjects.as_user("*", "api.>"), subjects.from_outside("*", "api.>"))


def reports_filter(subjects: Subjects) -> str:
    """All reports of all seeds."""
    return f"{subjects.prefix}.report.>"


def parse_report_subject(subject: str, subjects: Subjects) -> tuple[str, ObjectKey]:
    """The seed whose gardenlet reports and the object it reports on. Raises BadRequest."""
    start = f"{subjects.prefix}.report."
    seed, _, tail = subject.removeprefix(start).partition(".")
    try:
        return seed, ObjectKey.from_tail(tail if subject.startswith(start) else "")
    except ValueError as error:
        raise BadRequest(f"the subject {subject} is not report.<seed>.<kind>.<namespace>.<name>") from error


def reported_object(subjects: Subjects) -> Callable[[str], ObjectKey | None]:
    """The object that a report's subject names; None for other subjects, and malformed ones."""

    def object_of(subject: str) -> ObjectKey | None:
        try:
            return parse_report_subject(subject, subjects)[1]
        except BadRequest:
            return None

    return object_of


def key_of_tail(tail: str, stored_kinds: Sequence[str] = ()) -> ObjectKey:
    """The object that `<kind>.<namespace>.<name>` names, its kind in any word for it. Raises BadRequest, Unsupported.

    For a cluster-scoped kind the namespace may be left out: `seed.aws` is `seed._.aws`.
    """
    word, _, rest = tail.partition(".")
    spec = by_word(word, stored_kinds)
    if spec.namespaced is False:
        return ObjectKey(spec.singular, "", _required(rest.removeprefix(f"{CLUSTER_SCOPE}."), tail))
    namespace, _, name = rest.partition(".")
    scope = "" if namespace == CLUSTER_SCOPE and spec.namespaced is None else namespace
    return ObjectKey(spec.singular, scope, _required(name, tail))


def list_target_of_tail(tail: str, stored_kinds: Sequence[str] = ()) -> ListTarget:
    """Kind and namespace of `<kind>[.<namespace>]`. Raises BadRequest, Unsupported."""
    word, _, namespace = tail.partition(".")
    spec = by_word(word, stored_kinds)
    if "." in namespace:
        raise BadRequest(f"list.{tail}: a list is requested as list.<kind> or list.<kind>.<namespace>")
    if not namespace or (spec.namespaced is False):
        return ListTarget(spec.singular, None)
    return ListTarget(spec.singular, namespace)


def _required(name: str, tail: str) -> str:
    if not name:
        raise BadRequest(f"{tail}: an object is named as <kind>.<namespace>.<name> ({CLUSTER_SCOPE} without namespace)")
    return name


def unknown_verb(tail: str) -> Unsupported:
    """The error for a request of an unknown verb."""
    return Unsupported(f"{tail.split('.', 1)[0]!r} is no request: there are {', '.join(VERBS)}")
