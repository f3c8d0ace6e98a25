"""Accounts, users and auth callout of `nats.conf`, from the permission table.

The services of the landscape are users of the configuration, by nkey: they come in while the callout is away. Everybody
else is let in by the callout, or (`static`) is a user of the configuration as well.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.api.identity.accounts import AUTH, GARDEN, OUT, SYS, Crossing, crossings
from gardenbus.common.api.identity.permissions import (
    OUTSIDER_PAYLOAD,
    OUTSIDER_SUBSCRIPTIONS,
    Permissions,
    permissions_of,
)
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects

CALLOUT_TIMEOUT_SECONDS = 3
TLS_TIMEOUT_SECONDS = 10
"""Longest handshake: many clients come at once when a server was restarted, each slower than the server."""

_LIMITS = f"limits: {{ max_payload: {OUTSIDER_PAYLOAD}, max_subs: {OUTSIDER_SUBSCRIPTIONS} }}"
"""Of each connection of the account: the server does not apply those in the callout's response (2.15)."""


class Password(NamedTuple):
    """A user that comes in with a password (its bcrypt hash, or the text itself)."""

    user: str
    password: str


class Authorization(NamedTuple):
    """Users that may come in. Public nkeys, but for `operator`."""

    services: Mapping[str, str]
    """By the service's name."""
    system: str
    """The user of the system account."""
    operator: Password | None = None
    callout: str | None = None
    """The user that responds to callouts; None: there is no callout."""
    issuer: str = ""
    """The account key that signs the callout's responses."""
    static: Mapping[Principal, str] = {}
    """Principals outside the services."""
    others: Mapping[str, Permissions] = {}
    """Users beside the services who are in no row of the table, by their public nkey."""


def authorization_configuration(authorization: Authorization, subjects: Subjects) -> str:
    """The text for `nats.conf`: accounts and, if there is one, the callout."""
    garden = [
        _nkey_user(public, permissions_of(Principal("service", name), subjects))
        for name, public in authorization.services.items()
    ]
    garden.extend(_nkey_user(public, permissions) for public, permissions in authorization.others.items())
    if authorization.operator:
        own = permissions_of(Principal("operator", authorization.operator.user), subjects)
        login = f"user: {_text(authorization.operator.user)}, password: {_text(authorization.operator.password)}"
        garden.append(f"{{ {login}, permissions: {_permissions(own)} }}")
    out = [_nkey_user(public, permissions_of(who, subjects)) for who, public in authorization.static.items()]
    auth = [f"{{ nkey: {authorization.callout} }}"] if authorization.callout else []
    accounts = "\n".join(
        (
            _account(GARDEN, garden, ["jetstream: enabled", *_ends(crossings(subjects), inside=True)]),
            _account(OUT, out, [_LIMITS, *_ends(crossings(subjects), inside=False)]),
            _account(AUTH, auth, []),
            _account(SYS, [f"{{ nkey: {authorization.system} }}"], []),
        )
    )
    return f"accounts {{\n{accounts}}}\nsystem_account: {SYS}\n{_callout(authorization)}"


def tls_configuration(certificate: Path, key: Path, *, peers: Path | None = None) -> str:
    """The block `tls` of `nats.conf`, or of its `cluster`: there the other side needs a certificate of `peers`, too.

    Clients show no certificate in TLS: that would shut out who has none yet. They show it in CONNECT (`proof`).
    """
    verify = f", ca_file: {_text(str(peers))}, verify: true" if peers else ""
    files = f"cert_file: {_text(str(certificate))}, key_file: {_text(str(key))}{verify}"
    return f"tls {{ {files}, timeout: {TLS_TIMEOUT_SECONDS} }}\n"


def _callout(authorization: Authorization) -> str:
    if authorization.callout is None:
        return ""
    insiders = [*authorization.services.values(), *authorization.others]
    insiders += [authorization.system, authorization.callout]
    if authorization.operator:
        insiders.append(authorization.operator.user)
    insiders.extend(authorization.static.values())
    return (
        "authorization {\n"
        f"  timeout: {CALLOUT_TIMEOUT_SECONDS}\n"
        f"  auth_callout {{ issuer: {authorization.issuer}, account: {AUTH}, "
        f"auth_users: [{', '.join(map(_text, insiders))}] }}\n"
        "}\n"
    )


def _account(name: str, users: Iterable[str], more: Iterable[str]) -> str:
    lines = "".join(f"    {line}\n" for line in more)
    rows = "".join(f"      {user}\n" for user in users)
    return f"  {name} {{\n{lines}    users: [\n{rows}    ]\n  }}\n"


def _ends(every: Iterable[Crossing], *, inside: bool) -> list[str]:
    """Exports and imports of one side."""
    exports: list[str] = []
    imports: list[str] = []
    for crossing in every:
        subject = _text(crossing.subject)
        if crossing.inward == inside:
            response = ", response_type: stream" if crossing.is_stream else ""
            exports.append(f"{{ service: {subject}{response} }}")
        else:
            source = GARDEN if crossing.inward else OUT
            local = f", to: {_text(crossing.local)}" if crossing.local else ""
            imports.append(f"{{ service: {{ account: {source}, subject: {subject} }}{local}, share: true }}")
    return [f"exports: [{', '.join(exports)}]", f"imports: [{', '.join(imports)}]"]


def _nkey_user(public: str, permissions: Permissions) -> str:
    return f"{{ nkey: {public}, permissions: {_permissions(permissions)} }}"


def _permissions(permissions: Permissions) -> str:
    return f"{{ publish: {_allowed(permissions.publish)}, subscribe: {_allowed(permissions.subscribe)} }}"


def _allowed(subjects: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, subjects))}]" if subjects else '{ deny: [">"] }'


def _text(value: str) -> str:
    return json.dumps(value)
