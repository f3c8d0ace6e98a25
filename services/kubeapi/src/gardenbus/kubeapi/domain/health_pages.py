"""Pages of health: `/healthz`, `/livez`, `/readyz` and single checks below them, in kube-apiserver's words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

OK = "ok"
_FAILED = 500


class HealthPage(NamedTuple):
    """Status and text of a page."""

    status: int
    text: str


def health_page(endpoint: str, checks: Mapping[str, str], query: Mapping[str, Sequence[str]]) -> HealthPage:
    """The page of all checks; each is "ok", or else why not, which is stated by its own page alone."""
    excluded = {name for each in query.get("exclude", ()) for name in each.split(",") if name}
    lines: list[str] = []
    failed = False
    for name, problem in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif problem == OK:
            lines.append(f"[+]{name} ok")
        else:
            failed = True
            lines.append(f"[-]{name} failed: reason withheld")
    if unknown := sorted(excluded - checks.keys()):
        quoted = ", ".join(f'"{name[:80]}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if failed:
        return HealthPage(_FAILED, "\n".join([*lines, f"{endpoint} check failed", ""]))
    if "verbose" not in query:
        return HealthPage(200, OK)
    return HealthPage(200, "\n".join([*lines, f"{endpoint} check passed", ""]))


def check_page(problem: str) -> HealthPage:
    """The page of one check."""
    return HealthPage(200, OK) if problem == OK else HealthPage(_FAILED, f"internal server error: {problem}\n")
