"""The reason for which a landscape does not let this command in, and what to do: the server says neither."""

from datetime import datetime
from pathlib import Path

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.contexts.credential_files import expiry_of, kind_of
from gardenbus.common.adapters.addresses import has_user
from gardenbus.common.errors import BadRequest, SettingsInvalid

_ISSUE = "an operator issues others: `gardenbus identity issue`"


def reason_for(where: LandscapeTarget, now: datetime) -> str:
    """The credential that was rejected, why as far as this side can know, and what to do."""
    if where.credentials is not None:
        return _of_file(where.credentials, where.ca, now)
    if where.login is not None:
        file = (where.directory or Path()) / "landscape.json"
        return f"the password of {where.login[0]} in {file} is of another landscape, or of one before `up --fresh`"
    if has_user(where.nats_url):
        return f"user or password in its address are wrong; {_ISSUE}"
    return (
        "no credentials were sent. `gardenbus login` keeps them in a context, --dir finds those of a landscape of this "
        "machine, GARDENBUS_NATS_CREDENTIALS names a file"
    )


def _of_file(file: Path, ca: str | None, now: datetime) -> str:
    try:
        kind, ends = kind_of(file), expiry_of(file)
        if ends is not None and ends <= now:
            return f"the credentials in {file} expired at {ends.isoformat()}; {_ISSUE}"
        if kind == "certificate" and (problem := _problem_of_certificate(file, ca)):
            return problem
    except BadRequest as error:
        return error.message
    why = "they are of another landscape, or were revoked, or no identity service runs"
    return f"it does not know those in {file}: {why}; {_ISSUE}"


def _problem_of_certificate(file: Path, ca: str | None) -> str:
    from gardenbus.credentials.authorities import AuthoritiesFile  # noqa: PLC0415  slow to import, and seldom needed
    from gardenbus.credentials.certificates import belong_together, is_issued_by, read_certificate, read_key  # noqa: PLC0415

    content = file.read_bytes()
    certificate = read_certificate(content)
    if not belong_together(certificate, read_key(content)):
        return f"the key in {file} is not that of the certificate in it: restore the one that is, or {_ISSUE}"
    if ca is None:
        return ""
    try:
        authorities = AuthoritiesFile(Path(ca))()
    except SettingsInvalid as error:
        return error.message
    if any(is_issued_by(certificate, authority) for authority in authorities):
        return ""
    return f"the certificate in {file} is of another authority than those in {ca}; {_ISSUE}"
