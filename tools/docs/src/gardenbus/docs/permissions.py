"""The page of the permission table: what each principal may publish and subscribe to."""

from gardenbus.common.api.identity.accounts import crossings
from gardenbus.common.api.identity.permissions import Permissions, permissions_of, service_names
from gardenbus.common.api.identity.principals import Principal, Role
from gardenbus.common.api.keys import Subjects
from gardenbus.docs.markdown import row, table

_HEAD = """# Permissions

What each principal may publish and subscribe to, on a server whose configuration was made of this table. The server
refuses everything else. `NAME` is the principal's own name: a gardenlet's is its seed, a member agent's its cluster.
"""

_OUTSIDE: tuple[Role, ...] = ("gardenlet", "member-agent", "scheduler", "user", "bootstrap")


def permissions_page() -> str:
    """The page's Markdown."""
    subjects = Subjects()
    inside = [Principal("service", name) for name in service_names()]
    parts = [_HEAD, "## Services and the operator\n", "They are in the account `GARDEN`, where JetStream is.\n"]
    parts += [_section(who.name, permissions_of(who, subjects)) for who in (*inside, Principal("operator", "operator"))]
    parts += ["## Everybody else\n", "They are in the account `OUT`. `IN.API` is the part of JetStream's API there.\n"]
    parts += [_section(role, permissions_of(Principal(role, "NAME"), subjects)) for role in _OUTSIDE]
    parts += ["## Crossings\n", _crossings(subjects)]
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
    return table(("asked as", "answered as", "who asks whom"), rows)
