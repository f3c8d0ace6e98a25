"""Who asks for what: the subjects of requests and reports, taken apart and put together. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.errors import BadRequest, Unsupported
from gardenbus.common.resources.keys import CLUSTER_SCOPE, ObjectKey, Subjects
from gardenbus.common.resources.kinds import by_word

ANONYMOUS = "system:anonymous"
"""Who speaks when the subject names nobody."""


class Spoken(NamedTuple):
    """A request's user and what stands behind `garden.` or `garden.as.<user>.` (`apply`, `api.get.shoot.dev.a`)."""

    user: str
    tail: str


class Wanted(NamedTuple):
    """What a list asks for; namespace None is all of them."""

    kind: str
    namespace: str | None


def spoken(subject: str, subjects: Subjects) -> Spoken:
    """Take a request's subject apart."""
    tail = subject.removeprefix(f"{subjects.prefix}.")
    if not tail.startswith("as."):
        return Spoken(ANONYMOUS, tail)
    _, user, rest = tail.split(".", 2)
    return Spoken(user, rest)


def api_filters(subjects: Subjects) -> tuple[str, ...]:
    """The subjects of answered requests, with and without a user."""
    return (subjects.api(">"), subjects.spoken_by("*", "api.>"))


def reports_filter(subjects: Subjects) -> str:
    """All reports of all seeds."""
    return f"{subjects.prefix}.report.>"


def reporter_and_key(subject: str, subjects: Subjects) -> tuple[str, ObjectKey]:
    """The seed whose gardenlet reports and the object it reports on. Raises BadRequest."""
    start = f"{subjects.prefix}.report."
    seed, _, tail = subject.removeprefix(start).partition(".")
    try:
        return seed, ObjectKey.from_tail(tail if subject.startswith(start) else "")
    except ValueError as error:
        raise BadRequest(f"the subject {subject} is not report.<seed>.<kind>.<namespace>.<name>") from error


def key_in(tail: str, stored_kinds: Sequence[str] = ()) -> ObjectKey:
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


def list_in(tail: str, stored_kinds: Sequence[str] = ()) -> Wanted:
    """What `<kind>[.<namespace>]` lists. Raises BadRequest, Unsupported."""
    word, _, namespace = tail.partition(".")
    spec = by_word(word, stored_kinds)
    if "." in namespace:
        raise BadRequest(f"list.{tail}: a list is asked for as list.<kind> or list.<kind>.<namespace>")
    if not namespace or (spec.namespaced is False):
        return Wanted(spec.singular, None)
    return Wanted(spec.singular, namespace)


def _required(name: str, tail: str) -> str:
    if not name:
        raise BadRequest(f"{tail}: an object is named as <kind>.<namespace>.<name> ({CLUSTER_SCOPE} without namespace)")
    return name


def no_such_verb(tail: str) -> Unsupported:
    """The refusal of a request that is none."""
    return Unsupported(
        f"{tail.split('.', 1)[0]!r} is no request: there are apply, patch, delete, get, list, bind, scale, kinds, "
        "waiting, retry, census, explain and explain-seed"
    )
