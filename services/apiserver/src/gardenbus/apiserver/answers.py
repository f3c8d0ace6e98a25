"""How requests are answered, and how what cannot be taken is put on `garden.rejected`. Pure.

An answer is `{"ok": true, "result": …, "warnings": […]}` or
`{"ok": false, "error": {"code", "reason", "message", "details": [{"field", "message"}]}, "warnings": […]}`.
Answers to writes also have `outcome`: `created`, `configured`, `unchanged`, `deleting`, `deleted` or `superseded`.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.common.errors import FieldProblem, GardenbusError, InvalidResource
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.document import encode
from gardenbus.common.resources.keys import Header

REJECTED_BODY_LIMIT = 64 * 1024
"""Bytes of a rejected message that are kept: enough to recognise any manifest by."""

REASON_LIMIT = 1024
"""Bytes of a reason in a header; servers and clients refuse long header blocks."""


_FIELD_FIRST = re.compile(r"(?:document \d+: )?(?P<field>[A-Za-z][\w-]*(?:[.\[][^\s:]*)?): (?P<problem>.+)", re.DOTALL)


class Answer(msgspec.Struct, omit_defaults=True):
    """One answer; `result` may hold manifests as `msgspec.Raw`, so that they are not parsed to be sent.

    What was carried out always has its list of warnings, a refusal only where there are any.
    """

    ok: bool
    outcome: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET
    warnings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    def encoded(self) -> bytes:
        """As JSON."""
        return encode(self)


def answered(result: Any, warnings: Sequence[str] = (), *, outcome: str | None = None) -> Answer:
    """The answer to a request that was carried out."""
    return Answer(ok=True, outcome=outcome or msgspec.UNSET, result=result, warnings=tuple(warnings))


def refused(error: GardenbusError, warnings: Sequence[str] = ()) -> Answer:
    """The answer to a request that was not carried out, with the fields that are at fault."""
    return Answer(ok=False, error=error_value(error), warnings=tuple(warnings) or msgspec.UNSET)


def error_value(error: GardenbusError) -> dict[str, Any]:
    """An error as answers carry it. A message that begins with a field's path names that field."""
    problems = error.problems if isinstance(error, InvalidResource) else _named_field(error.message)
    return {
        "code": error.code,
        "reason": error.reason,
        "message": error.message,
        "details": [{"field": problem.field, "message": problem.message} for problem in problems],
    }


def _named_field(message: str) -> tuple[FieldProblem, ...]:
    found = _FIELD_FIRST.fullmatch(message)
    return (FieldProblem(found["field"], found["problem"]),) if found else ()


def answered_together(answers: Sequence[Answer]) -> Answer:
    """One answer for several documents: `result` lists theirs, in order; it is ok only if all of them are.

    A single document is answered plainly. If any was refused, `error` counts them and has the code of the first, and
    `result` still says of each document how it went.
    """
    if len(answers) == 1:
        return answers[0]
    bad = [answer for answer in answers if not answer.ok]
    if not bad:
        return Answer(
            ok=True,
            outcome=[answer.outcome for answer in answers],
            result=[answer.result for answer in answers],
            warnings=tuple(warning for answer in answers for warning in answer.warnings or ()),
        )
    first: dict[str, Any] = bad[0].error
    message = f"{len(bad)} of {len(answers)} documents were refused; the first: {first['message']}"
    return Answer(ok=False, result=list(answers), error={**first, "message": message})


def single_line(text: str, limit: int = REASON_LIMIT) -> str:
    """Text that is safe in a header: printable ASCII, one line, at most `limit` bytes."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split()).encode("ascii", "backslashreplace").decode()
    return line if len(line) <= limit else line[: limit - 3] + "..."


def rejection(
    *, rejected_subject: str, subject: str, body: bytes, reason: str, refused_part: bytes | None = None
) -> Message:
    """What goes to `garden.rejected`: the first 64 KB (of `refused_part` where only one document is at fault).

    Headers say why, where it came from, and the SHA-256 of the whole message.
    """
    return Message(
        subject=rejected_subject,
        body=(body if refused_part is None else refused_part)[:REJECTED_BODY_LIMIT],
        headers={
            Header.REASON: single_line(reason),
            Header.SUBJECT: single_line(subject),
            Header.SHA256: hashlib.sha256(body).hexdigest(),
        },
    )


def reason_of(error: GardenbusError) -> str:
    """An error in one line, with its fields."""
    problems = error.problems if isinstance(error, InvalidResource) else ()
    fields = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
    return f"{error.reason}: {error.message}" + (f" [{fields}]" if fields and fields not in error.message else "")
