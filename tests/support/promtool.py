"""Prometheus and its own tool, where they are: on the path, or brought by `.ci/prometheus`."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.eventually import HANG_SECONDS

ROOT = Path(__file__).parents[2]

FOREIGN = {"up", "ALERTS"}
"""Metrics that Prometheus knows by itself."""


def promtool() -> str | None:
    """The tool's path, or None."""
    return _found("promtool")


def prometheus() -> str | None:
    """The server's path, or None."""
    return _found("prometheus")


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{ROOT / '.tools' / 'bin'}")


def run_promtool(*arguments: str) -> str:
    """Run it; answer what it says. Fails the test when the tool is not content."""
    tool = promtool()
    assert tool is not None, "asked for only where it is"
    ended = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert ended.returncode == 0, f"promtool {' '.join(arguments)}\n{ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


Series = Mapping[str, str]
"""A series with its labels → its values, in promtool's notation (`0+60x30`), one a minute."""


def scenario(name: str, series: Series, *, minutes: int, firing: Sequence[str]) -> dict[str, object]:
    """A test of promtool's: after so many minutes exactly these alerts fire."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{minutes}m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing],
            }
        ],
    }


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression reads, by the names of their families."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on|without|ignoring) \([^)]*\)", "", expression)
    words = set(re.findall(r"\b[a-zA-Z_]\w*\b(?!\s*\()", bare)) - {"or", "and", "unless", "by", "on", "bool"}
    return {re.sub(r"^(\w+_seconds|\w+_shoots)_(bucket|count|sum)$", r"\1", word) for word in words}
