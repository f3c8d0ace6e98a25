"""Nobody becomes operator, service, seed or nobody by a text that he brings along, whichever way he brings it."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gardenbus.apiserver.access.static_users import StaticUsers
from gardenbus.apiserver.domain.request_subjects import parse_request_subject
from gardenbus.cli.commands import issued as issued_command
from gardenbus.common.adapters.nats.credentials import Login, login_credentials
from gardenbus.common.api.identity import names
from gardenbus.common.api.identity.id_tokens import user_named
from gardenbus.common.api.identity.issued_credentials import read_credentials
from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import OPERATOR, Principal, principal_of
from gardenbus.common.api.identity.requested_tokens import USER_ANNOTATION, requested_principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.users import ANONYMOUS
from gardenbus.common.errors import BadRequest, Forbidden, SettingsInvalid
from gardenbus.credentials.new_nkeys import new_nkey
from gardenbus.diagnostics.login_tokens import Claims, signed, verified

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEY = b"k" * 64
NKEY = new_nkey("user").public
OTHERS = (ANONYMOUS, OPERATOR, *service_names(), *names.RESERVED_PREFIXES, "system:serviceaccount:dev:robot")

texts = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"[a-zA-Z0-9:@._-]{1,30}", fullmatch=True),
    st.tuples(st.sampled_from(OTHERS), st.from_regex(r"[a-z0-9:.]{0,12}", fullmatch=True)).map("".join),
    st.sampled_from(OTHERS).map(lambda name: name.replace("k", "\u212a").replace("s", "\u017f")),
    st.sampled_from(OTHERS).map(str.upper),
    st.sampled_from(OTHERS).map(str.title),
)


def _by_provider(text: str) -> str:
    return user_named({"sub": text, "groups": ["system:masters", "operator"]}, "sub")


def _by_requestor(text: str) -> str:
    return requested_principal({"metadata": {"annotations": {USER_ANNOTATION: text}}}).user


def _by_certificate(text: str) -> str:
    return names.certified(text, ("gardenbus.io:system:users",)).user


def _by_session(text: str) -> str:
    token = signed(KEY, "session", Claims(text, "id", int((NOW + timedelta(hours=1)).timestamp())))
    return verified(KEY, "session", token, NOW, Claims).user


WAYS: Mapping[str, Callable[[str], str]] = {
    "a provider's claim": _by_provider,
    "identity issue --user": lambda text: issued_command.person(text).user,
    "a token requestor's Secret": _by_requestor,
    "a certificate's CN": _by_certificate,
    "a session of the dashboard": _by_session,
}
MAY_BE_ISSUED = frozenset({"scheduler", "extension", "plugin"})
"""Roles that an operator's Secret may name."""


@given(text=texts)
@example(text=ANONYMOUS)
@example(text="\u212aatrin")
def test_nobody_becomes_somebody_else_by_a_text_of_his_own(text: str) -> None:
    for way, name_of in WAYS.items():
        try:
            user = name_of(text)
        except (BadRequest, Forbidden):
            continue
        if user == OPERATOR:
            assert way == "a session of the dashboard", "a link of the operator, who holds its key"
            continue
        principal = principal_of(user)
        assert principal.role in ({"user"} | (MAY_BE_ISSUED if "Secret" in way else set())), way
        assert user not in service_names()
        assert text.isascii()
        assert not user.startswith(("system:", "gardener.cloud:", "gardenbus.io:", "kubernetes-fleet.io:"))


@given(text=texts)
def test_nobody_is_only_who_names_no_user(text: str) -> None:
    subjects = Subjects("garden")
    try:
        requester = parse_request_subject(f"garden.as.{text.replace('.', '%2E')}.apply", subjects).user
    except BadRequest:
        return
    assert requester != ANONYMOUS
    assert names.requester(requester).user == requester


@given(text=texts)
def test_what_lets_somebody_in_is_no_operators_and_no_services(text: str) -> None:
    data = {"user": text, "expires": "2027-01-01T00:00:00Z", "sha256": "0" * 64}
    encoded = {name: base64.b64encode(value.encode("utf-8", "replace")).decode() for name, value in data.items()}
    try:
        principal = read_credentials(json.dumps({"data": encoded}).encode()).principal
    except BadRequest:
        return
    assert principal.account == "OUT"
    assert principal.role != "bootstrap"
    assert principal.user not in (ANONYMOUS, OPERATOR, *service_names())


@given(text=texts)
def test_a_client_is_nobody_whom_no_credentials_are_of(text: str) -> None:
    try:
        credentials = login_credentials(Login(text, "secret"))
    except BadRequest:
        return
    assert credentials.principal is not None
    assert credentials.principal.user not in (ANONYMOUS, *service_names())


@pytest.mark.parametrize("user", [*OTHERS[:2], "relay", "gardener.cloud:system:seed:aws", "Ann", "bootstrap:4f2a91"])
def test_the_servers_configuration_names_nobody_who_is_not_issued_a_key(tmp_path: Path, user: str) -> None:
    file = tmp_path / "users.json"
    file.write_text(json.dumps({NKEY: user}))
    with pytest.raises(SettingsInvalid, match="STATIC_USERS"):
        StaticUsers(file)


def test_the_servers_configuration_names_nkeys_alone(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    file.write_text(json.dumps({"ann": "seed:aws"}))
    with pytest.raises(SettingsInvalid, match="no public nkey"):
        StaticUsers(file)


@pytest.mark.parametrize(
    ("name", "organizations"),
    [
        ("ann", ("gardenbus.io:system:users", "system:masters")),
        ("ann", ("system:masters",)),
        ("seed:aws", ("gardener.cloud:system:seeds",)),
        ("member:rome", ("gardenbus.io:system:members",)),
        ("operator", ("gardenbus.io:system:operators",)),
        ("relay", ("gardenbus.io:system:users",)),
        ("bootstrap:4f2a91", ("gardenbus.io:system:bootstraps",)),
        ("system:anonymous", ("gardenbus.io:system:users",)),
        ("system:serviceaccount:dev:robot", ("gardenbus.io:system:users",)),
        ("gardener.cloud:system:seed:", ("gardener.cloud:system:seeds",)),
        ("gardener.cloud:system:seed:a.b", ("gardener.cloud:system:seeds",)),
    ],
)
def test_a_certificate_names_one_party_in_its_own_words(name: str, organizations: tuple[str, ...]) -> None:
    with pytest.raises(BadRequest):
        names.certified(name, organizations)


@pytest.mark.parametrize(("namespace", "name"), [("a:b", "c"), ("a", "b:c"), ("", "b"), ("a", ""), ("A", "b")])
def test_a_service_account_has_one_namespace_and_one_name(namespace: str, name: str) -> None:
    with pytest.raises(BadRequest):
        names.service_account(namespace, name)


def test_who_may_carry_a_name_does() -> None:
    assert names.claimed_person("Ann@Example.org").user == "ann@example.org"
    assert names.person("oidc:ann") == Principal("user", "oidc:ann")
    assert names.service_account("garden-crew", "robot").user == "system:serviceaccount:garden-crew:robot"
    assert names.certified("gardener.cloud:system:seed:aws", ("gardener.cloud:system:seeds",)).user == "seed:aws"
    assert names.issued("scheduler:mine").role == "scheduler"
    assert names.requester("relay") == Principal("service", "relay")
    assert names.user_of_token("ann@example%2Eorg") == "ann@example.org"
