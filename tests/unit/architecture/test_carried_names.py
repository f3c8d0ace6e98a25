"""Whose name a text would be is one thing, who may carry it another: few modules may be content with the first."""

import ast
from pathlib import Path

from tests.unit.architecture.test_rooms import ROOT, SOURCES

NAMING = {
    "libs/common/src/gardenbus/common/api/identity/names.py": "decides who may carry a name",
    "libs/common/src/gardenbus/common/api/identity/signing_requests.py": "groups of a requester who was proved",
    "services/apiserver/src/gardenbus/apiserver/domain/authorization/decision.py": "also reviews others by their names",
    "services/apiserver/src/gardenbus/apiserver/requests/access_reviews.py": "the same",
    "services/apiserver/src/gardenbus/apiserver/access/authorizer.py": "the same",
    "services/apiserver/src/gardenbus/apiserver/requests/bootstrap_tokens.py": "a requester who was proved",
    "services/apiserver/src/gardenbus/apiserver/requests/stream_positions.py": "the same",
    "services/identity/src/gardenbus/identity/domain/approval.py": "a requester who was proved",
    "services/identity/src/gardenbus/identity/registry.py": "a requester who was proved",
    "cli/src/gardenbus/cli/commands/ca.py": "users of certificates that were issued",
    "cli/src/gardenbus/cli/commands/certificate.py": "names whom an operator revokes",
}
LENIENT = {"principal_of", "check_user"}


def _imports(path: Path) -> set[str]:
    source = path.read_text(encoding="utf-8")
    if not any(name in source for name in LENIENT):
        return set()
    tree = ast.parse(source)
    return {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}


def test_whoever_takes_a_name_from_outside_has_it_decided_who_may_carry_it() -> None:
    found = {str(path.relative_to(ROOT)) for path in SOURCES if _imports(path) & LENIENT}
    assert found - {"libs/common/src/gardenbus/common/api/identity/principals.py"} == set(NAMING)
