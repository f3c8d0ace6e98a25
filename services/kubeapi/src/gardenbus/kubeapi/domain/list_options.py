"""Options of lists and watches, read from the query, and the tokens by which a list goes on."""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.list_selectors import ObjectPredicate, list_predicate, required_field
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.domain.request_info import flag_of
from gardenbus.kubeapi.domain.statuses import Rejected, invalid_option

MOST_SECONDS = 3600


class ListOptions(NamedTuple):
    """Options of one request."""

    limit: int = 0
    continues: "Continue | None" = None
    selector: str = ""
    """Both selectors as one text: watchers of one text share what it selects."""
    matches: ObjectPredicate | None = None
    version: int | None = None
    """The resourceVersion; None where there is none."""
    match: str = ""
    sends_initial_events: bool = False
    bookmarks: bool = False
    timeout_seconds: int = 0
    name: str = ""
    """The one name that can match; "" where any may."""


class Continue(msgspec.Struct, array_like=True):
    """Point at which a list goes on: the version of its beginning, and the last object that was sent."""

    version: int
    namespace: str
    name: str

    @property
    def token(self) -> str:
        """As a client sends it back."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def list_options(query: Mapping[str, str], *, watch: bool = False) -> ListOptions:
    """Read the options. Raises Rejected, BadRequest."""
    label_selector, field_selector = query.get("labelSelector", ""), query.get("fieldSelector", "")
    options = ListOptions(
        limit=_number(query, "limit"),
        continues=_continue(query.get("continue", "")),
        selector=f"{label_selector}\n{field_selector}" if label_selector or field_selector else "",
        matches=list_predicate({"labelSelector": label_selector, "fieldSelector": field_selector}),
        version=_version(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        sends_initial_events=flag_of(query.get("sendInitialEvents", ""), "sendInitialEvents"),
        bookmarks=flag_of(query.get("allowWatchBookmarks", ""), "allowWatchBookmarks"),
        timeout_seconds=min(_number(query, "timeoutSeconds"), MOST_SECONDS),
        name=required_field(field_selector, "metadata", "name"),
    )
    _check(options, watch=watch)
    return options


def _check(options: ListOptions, *, watch: bool) -> None:
    match, initial = "resourceVersionMatch", "sendInitialEvents"
    if options.match not in ("", "Exact", "NotOlderThan"):
        raise _invalid(match, "NotSupported", 'supported values: "Exact", "NotOlderThan", ""')
    if options.sends_initial_events and not watch:
        raise _invalid(initial, "Forbidden", "sendInitialEvents is forbidden for list")
    if options.sends_initial_events and not (options.match == "NotOlderThan" and options.bookmarks):
        raise _invalid(match, "Forbidden", "sendInitialEvents needs NotOlderThan, and allowWatchBookmarks=true")
    if watch and options.match and not options.sends_initial_events:
        raise _invalid(match, "Forbidden", "it is for lists, and for watches that send initial events")
    if not watch and options.match and options.version is None:
        raise _invalid(match, "Forbidden", "it needs a resourceVersion")
    if options.match == "Exact" and options.version == 0:
        raise _invalid(match, "Forbidden", 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    if options.continues and options.version:
        raise BadRequest("resourceVersion: is not for a list that goes on by `continue`")


def _invalid(field: str, reason: str, message: str) -> Rejected:
    return invalid_option("ListOptions", field, f"FieldValue{reason}", message)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if text.startswith("-") and text[1:].isdecimal():
        return 0  # as Go's clients write that they have none
    if not text.isdecimal() or len(text) > 12:  # noqa: PLR2004 - no limit, and no time, has more digits
        raise BadRequest(f"{name}: {text[:40]!r} is no number")
    return int(text)


def _version(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 19:  # noqa: PLR2004 - digits of 2^63
        raise BadRequest(f"resourceVersion: {text[:40]!r} is no version")
    return int(text)


def _continue(token: str) -> "Continue | None":
    if not token:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=Continue)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise BadRequest("continue: is no token of a list") from error


def metadata_of(document: Document) -> Document:
    """The metadata of a document."""
    return section(document, "metadata")
