"""The page of the permission table: what each principal may publish and subscribe to."""

from gardenbus.apiserver.domain.authorization.decision import (
    GLOBAL_KINDS,
    SCHEDULERS_KINDS,
    SERVICES,
)
from gardenbus.apiserver.domain.authorization.project_roles import MEMBER_WORDS, RULES, Rule
from gardenbus.common.api.identity.accounts import crossings
from gardenbus.common.api.identity.permissions import Permissions, permissions_of, service_names
from gardenbus.common.api.identity.principals import Principal, Role
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.kinds import CONFIDENTIAL, KINDS
from gardenbus.docs.markdown import row, table

_HEAD = """# Permissions

What each principal may publish and subscribe to, on a server whose configuration was made of this table. The server
rejects everything else. `NAME` is the principal's own name: a gardenlet's or an extension's is its seed, a member
agent's its cluster.
"""

_REQUESTS = """## Requests

What the apiserver allows beyond that; [who may do what](../production.md#who-may-do-what) says the rest in words.

"""

_OUTSIDE: tuple[Role, ...] = ("gardenlet", "member-agent", "scheduler", "extension", "plugin", "user", "bootstrap")


def permissions_page() -> str:
    """The page's Markdown."""
    subjects = Subjects()
    inside = [Principal("service", name) for name in service_names()]
    parts = [_HEAD, "## Services and the operator\n", "They are in the account `GARDEN`, where JetStream is.\n"]
    parts += [_section(who.name, permissions_of(who, subjects)) for who in (*inside, Principal("operator", "operator"))]
    parts += ["## Everybody else\n", "They are in the account `OUT`. `IN.API` is the part of JetStream's API there.\n"]
    parts += [_section(role, permissions_of(Principal(role, "NAME"), subjects)) for role in _OUTSIDE]
    parts += ["## Crossings\n", _crossings(subjects), _REQUESTS + _requests()]
    return "\n".join(parts)


def _section(name: str, permissions: Permissions) -> str:
    rows = [
        row(f"`{subject}`", verb)
        for verb, subjects in (("publish", permissions.publish), ("subscribe", permissions.subscribe))
        for subject in subjects
    ]
    return f"### {name}\n\n{table(('subject', 'may'), rows)}\n"


def _crossings(subjects: Subjects) -> str:
    rows = [
        row(f"`{each.local or each.subject}`", f"`{each.subject}`", "OUT → GARDEN" if each.inward else "GARDEN → OUT")
        for each in crossings(subjects)
    ]
    return table(("requested as", "served as", "who requests from whom"), rows)


def _requests() -> str:
    """Rules of roles in a Project and of services, and the kinds that are for everybody, or for few."""
    rows = [
        row(f"`{role}` in `spec.members`", *each)
        for role, name in MEMBER_WORDS.items()
        for each in (
            *((_words(rule.verbs), _kinds(rule)) for rule in RULES[name].in_namespace),
            (_words(RULES[name].on_project | RULES[name].custom_verbs), "its Project"),
        )
    ]
    rows += [
        row(f"service `{service}`", _words(rule.verbs), _kinds(rule))
        for service, rules in SERVICES.items()
        for rule in rules
    ]
    reads = "get, list, watch"
    rows += [
        row("everybody but bootstrappers, extensions and plug-ins", reads, _kinds(Rule(frozenset(), GLOBAL_KINDS))),
        row("a scheduler of one's own", reads, _kinds(Rule(frozenset(), SCHEDULERS_KINDS))),
        row("no viewer of the landscape", reads, _kinds(Rule(frozenset(), CONFIDENTIAL))),
    ]
    return table(("who", "verbs", "on"), rows)


def _words(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))


def _kinds(rule: Rule) -> str:
    others = frozenset(KINDS) - rule.kinds
    if len(others) < len(rule.kinds):
        return f"every kind but {_words(frozenset(KINDS[kind].kind for kind in others))}"
    return _words(frozenset(KINDS[kind].kind for kind in rule.kinds))
