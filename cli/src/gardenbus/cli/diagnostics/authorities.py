"""The certificate authority with files on this machine: its age, and users who have yet to renew in a rotation."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.signing_requests import NOT_AFTER, decoded
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.diagnostics.findings import DiagnosticFinding, some_of

ENDS_SOON = timedelta(days=365)
CHECK = "authority"


def behind(requests: Sequence[Document], is_new: Callable[[bytes], bool], now: datetime) -> list[str]:
    """Users whose latest valid certificate is not of the authority that signs now, by name."""
    last: dict[str, tuple[datetime, bytes]] = {}
    for request in requests:
        pem = decoded(section(request, "status").get("certificate"))
        ends = parse_timestamp(section(request, "metadata", "annotations").get(NOT_AFTER))
        if not pem or ends is None or ends <= now:
            continue
        user, made = _issued(pem)
        if user and (user not in last or last[user][0] < made):
            last[user] = (made, pem)
    return sorted(user for user, (_, pem) in last.items() if not is_new(pem))


def _issued(pem: bytes) -> tuple[str, datetime]:
    """User and time of issue of a certificate; no user where it names none."""
    from gardenbus.credentials.certificates import issued_at, principal_of_subject, read_certificate  # noqa: PLC0415

    try:
        certificate = read_certificate(pem)
        return principal_of_subject(certificate).user, issued_at(certificate)
    except BadRequest:
        return "", datetime.min.replace(tzinfo=UTC)


def findings(identity: Path, requests: Sequence[Document], command: str) -> list[DiagnosticFinding]:
    """Findings for the authority below a directory of identities; none where there is no authority."""
    from gardenbus.cli.local.authority_rotation import AuthorityRotation  # noqa: PLC0415  slow to import
    from gardenbus.credentials.certificates import is_issued_by, read_certificate  # noqa: PLC0415

    certificates, key = identity / "ca.crt", identity / "ca.key"
    if not (certificates.exists() and key.exists()):
        return []
    now = datetime.now(UTC)
    try:
        found = AuthorityRotation(certificates, key).read()
    except SettingsInvalid as error:
        return [DiagnosticFinding(CHECK, "failed", "; ".join(error.problems), "restore ca.crt and ca.key")]
    ends = found.signing.not_valid_after_utc
    if not found.is_rotating:
        state = "warning" if ends - now < ENDS_SOON else "ok"
        return [DiagnosticFinding(CHECK, state, f"one is trusted, until {ends:%Y-%m-%d}", command)]
    left = behind(requests, lambda pem: is_issued_by(read_certificate(pem), found.signing), now)
    both = "is being rotated: the old one is trusted beside the new one"
    if left:
        text = f"{both}; certificates of the old one have {some_of(left)}"
        return [DiagnosticFinding(CHECK, "warning", text, f"{command} (they renew theirs; again where one does not)")]
    return [DiagnosticFinding(CHECK, "warning", f"{both}; everybody has one of the new", f"{command} --finish")]
