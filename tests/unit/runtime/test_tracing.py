import json
import subprocess
import sys
from pathlib import Path

import pytest

from gardenbus.common.ports import tracing
from gardenbus.common.runtime.tracing import configure_tracing
from tests.support.spans import FROM_A_CLIENT, TRACE_ID

OFF: list[tuple[str, dict[str, str]]] = [
    ("auto", {}),
    ("off", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}),
]


@pytest.mark.parametrize(("setting", "environ"), OFF)
def test_nothing_is_recorded_unless_it_is_asked_for(setting: str, environ: dict[str, str]) -> None:
    configure_tracing("relay", setting, instance="a", environ=environ)()
    assert not tracing.is_on()
    assert tracing.begin("anything", "", is_first=True) is tracing.NOT_TRACED
    assert tracing.begin("anything", FROM_A_CLIENT).traceparent == FROM_A_CLIENT


def test_the_sdk_is_not_even_loaded_where_traces_are_off() -> None:
    code = (
        "import sys; from gardenbus.common.runtime.tracing import configure_tracing as configure;"
        "configure('relay', 'auto', instance='a', environ={})();"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_spans_are_written_to_a_file_each_ended_once(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    end = configure_tracing("relay", f"file:{file}", instance="a", environ={})
    try:
        assert tracing.is_on()
        span = tracing.begin("above", FROM_A_CLIENT, attributes={"gardenbus.seed": "aws"})
        below = tracing.begin("below", span.traceparent)
        below.end(failed="too bad")
        below.end()
        span.end(outcome="bound")
        span.end(failed="interrupted")
        assert tracing.begin("alone", "") is tracing.NOT_TRACED
    finally:
        end()
    assert not tracing.is_on()
    announced = {line["name"]: line for line in map(json.loads, file.read_text().splitlines())}
    assert sorted(announced) == ["above", "below"]
    assert announced["above"]["context"]["trace_id"] == f"0x{TRACE_ID}"
    assert announced["above"]["attributes"] == {"gardenbus.seed": "aws", "outcome": "bound"}
    assert announced["above"]["status"]["status_code"] == "UNSET"
    assert announced["below"]["parent_id"] == announced["above"]["context"]["span_id"]
    assert announced["below"]["status"]["description"] == "too bad"
    assert announced["above"]["resource"]["attributes"]["service.name"] == "gardenbus-relay"


@pytest.mark.parametrize("given", ["", "nonsense", f"ff{FROM_A_CLIENT[2:]}", f"{FROM_A_CLIENT}-x", "0" * 55])
def test_a_header_that_is_not_well_formed_is_none(given: str) -> None:
    assert tracing.received({tracing.TRACEPARENT: given}) == ""
    assert tracing.received({tracing.TRACEPARENT: FROM_A_CLIENT}) == FROM_A_CLIENT
