"""How far the rotation of an authority is, as `doctor` says it."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gardenbus.cli.diagnostics.authorities import behind, findings
from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import NOT_AFTER
from gardenbus.credentials.certificates import Authority, Issued, is_issued_by, new_authority, read_certificate

NOW = datetime.now(UTC)
CORK, PARIS = Principal("gardenlet", "cork"), Principal("member-agent", "paris")
COMMAND = "gardenbus ca rotate --dir D"


def a_request(issued: Issued) -> Document:
    """The record of a certificate."""
    ends = read_certificate(issued.certificate).not_valid_after_utc.isoformat()
    return {
        "metadata": {"annotations": {NOT_AFTER: ends}},
        "status": {"certificate": base64.b64encode(issued.certificate).decode()},
    }


def test_whose_last_certificate_that_lives_is_of_the_old_one_is_behind():
    old, new = (Authority(new_authority("garden", NOW - timedelta(days=9))) for _ in range(2))
    before = NOW - timedelta(days=2)
    requests: list[Document] = [
        a_request(old.client(CORK, before)),
        a_request(new.client(CORK, NOW)),
        a_request(old.client(PARIS, before)),
        a_request(old.client(Principal("gardenlet", "gone"), before, timedelta(days=1))),
        {"metadata": {"annotations": {}}, "spec": {}},
    ]

    left = behind(requests, lambda pem: is_issued_by(read_certificate(pem), new.certificate), NOW)

    assert left == [PARIS.user]


def test_doctor_says_what_the_next_step_is(tmp_path: Path):
    assert findings(tmp_path, [], COMMAND) == []
    first = new_authority("garden", NOW)
    (tmp_path / "ca.crt").write_bytes(first.certificate)
    (tmp_path / "ca.key").write_bytes(first.key)
    old = a_request(Authority(first).client(CORK, NOW))
    assert [each.state for each in findings(tmp_path, [old], COMMAND)] == ["ok"]

    rotation = AuthorityRotation(tmp_path / "ca.crt", tmp_path / "ca.key")
    rotation.begin(NOW)
    (rotating,) = findings(tmp_path, [old], COMMAND)
    assert (rotating.state, "seed:cork" in rotating.found) == ("warning", True)
    assert rotating.suggestion.startswith(COMMAND)
    (ready,) = findings(tmp_path, [], COMMAND)
    assert ready.suggestion == f"{COMMAND} --finish"

    (tmp_path / "ca.key").write_bytes(new_authority("other", NOW).key)
    assert [each.state for each in findings(tmp_path, [], COMMAND)] == ["failed"]
