"""Files of the project's own examples."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example_manifests() -> list[Path]:
    """Manifests of the examples, in the order of their paths; the templates of a Helm chart are none."""
    return [path for path in sorted(EXAMPLES.rglob("*.yaml")) if "chart" not in path.parts]
