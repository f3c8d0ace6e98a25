"""Every error that crosses a package border, sorted by what the caller should do about it.

    GardenbusError
    ├── Transient               the same call may succeed later
    │   ├── Unavailable         a server is away, fenced or full, or lets nobody in: wait, with backoff
    │   └── Conflict            the object changed underneath: look again at once, this is no failure
    ├── Terminal                the same call never succeeds until its input changes
    │   ├── InvalidResource     the document breaks a rule; carries the fields (422)
    │   ├── BadRequest          the message cannot be read at all (400)
    │   ├── Forbidden           admission or permission says no (403)
    │   └── Unsupported         the kind, verb or value is not known here (400)
    ├── NotFound                the object is not there (404)
    └── SettingsInvalid         the process cannot start; lists all problems (exit code 2)

Adapters translate the clients' exceptions into these and chain them.
"""

from dataclasses import dataclass
from typing import ClassVar


def encodable(text: str) -> str:
    """A text as UTF-8 can hold it: what is half of a surrogate pair stands as its escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class GardenbusError(Exception):
    """The root: has a `code` (as HTTP) and a `reason` (one CamelCase word, as Kubernetes').

    It quotes what somebody sent, and is sent, stored, logged and shown to them: its texts are always `encodable`.
    """

    code: ClassVar[int] = 503
    reason: ClassVar[str] = "InternalError"

    def __init__(self, *texts: object) -> None:
        super().__init__(*(encodable(text) if isinstance(text, str) else text for text in texts))

    @property
    def message(self) -> str:
        """Error message in one sentence, with the remedy."""
        return str(self.args[0]) if self.args else self.reason


class Transient(GardenbusError):
    """The same call may succeed later."""


class Unavailable(Transient):
    """A server is away, fenced, or over its limit. Retry with backoff."""

    code = 503
    reason = "ServiceUnavailable"


class NoResponse(Unavailable):
    """A request was sent and got no response: it may have been carried out."""


class TooManyRequests(Unavailable):
    """The sender has too much in flight. Send again after `retry_after_seconds`."""

    code = 429
    reason = "TooManyRequests"
    retry_after_seconds: ClassVar[int] = 1


class CredentialsRejected(Unavailable):
    """A server does not accept this user. Others' credentials may be let in later, or these."""

    code = 401
    reason = "Unauthorized"


class ServerUntrusted(CredentialsRejected):
    """A server shows no certificate of an authority that is trusted."""


class Conflict(Transient):
    """The object is not the version that the write was based on. Read it and reconcile again, at once."""

    code = 409
    reason = "Conflict"


class AlreadyExists(Conflict):
    """An object of that kind and name exists already."""

    reason = "AlreadyExists"


class Terminal(GardenbusError):
    """The same call never succeeds until its input changes."""

    code = 422
    reason = "Invalid"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """An invalid field: `field` is its path (`spec.provider.workers[0].name`)."""

    field: str
    message: str


class InvalidResource(Terminal):
    """The document is invalid; `problems` names each field."""

    code = 422
    reason = "Invalid"

    def __init__(self, message: str, problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class BadRequest(Terminal):
    """The message cannot be read: not UTF-8, not JSON or YAML, too deep, too big, no kind, no name."""

    code = 400
    reason = "BadRequest"


class Forbidden(Terminal):
    """Denied by admission: in use, not confirmed, or not permitted."""

    code = 403
    reason = "Forbidden"


class Impersonation(Forbidden):
    """A message says that it is of somebody else than the server says."""

    reason = "Impersonation"


class Unsupported(Terminal):
    """The kind, group, verb or value is not known here."""

    code = 400
    reason = "Unsupported"


class NotFound(GardenbusError):
    """The object is not there."""

    code = 404
    reason = "NotFound"


class SettingsInvalid(GardenbusError):
    """The process cannot start with these settings. `problems` lists all of them, `path: message`."""

    reason = "SettingsInvalid"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(map(encodable, problems))


def without_frames(error: BaseException) -> None:
    """Take the frames off an error, and off what it came of, that is kept as a value.

    They hold whatever was in hand, and often the error among it: a circle, which only the garbage collector opens.
    """
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
