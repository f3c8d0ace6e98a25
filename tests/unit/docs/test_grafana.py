"""The dashboard, as far as that can be told without Grafana: its structure, and every query of it."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardenbus.docs.exported_metrics import exported
from tests.support.promtool import FOREIGN, ROOT, metrics_in, promtool, run_promtool

GRAFANA = ROOT / "deploy" / "compose" / "observability" / "grafana"
DASHBOARD = GRAFANA / "dashboards" / "gardenbus.json"
ROWS = ["Overview", "Scheduling", "Queues", "Seeds", "Lifecycle of shoots", "Autoscaling", "Placements", "Servers"]
WIDTH = 24

Document = dict[str, Any]


def dashboard() -> Document:
    return json.loads(DASHBOARD.read_text())


def queries() -> Iterator[tuple[str, str]]:
    """Every query with the title of its panel."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for annotation in dashboard()["annotations"]["list"]:
        if "expr" in annotation:
            yield annotation["name"], annotation["expr"]


def test_the_rows_are_there_in_their_order_and_none_is_empty():
    panels = dashboard()["panels"]
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == ROWS
    kinds = [panel["type"] for panel in panels]
    assert kinds[0] == "row"
    assert all((one, other) != ("row", "row") for one, other in itertools.pairwise([*kinds, "row"]))


def test_panels_have_ids_and_titles_of_their_own_and_say_what_they_show():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        if panel["type"] == "row":
            continue
        assert panel["type"] in {"stat", "timeseries", "table"}
        assert panel["fieldConfig"]["defaults"]["unit"]
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references))
        assert panel["targets"]


def test_panels_lie_in_the_grid_without_covering_each_other_nor_the_next_row():
    taken: set[tuple[int, int]] = set()
    lowest = 0
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= WIDTH, panel["title"]
        cells = set(
            itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
        )
        assert not cells & taken, panel["title"]
        if panel["type"] == "row":
            assert place["y"] >= lowest, panel["title"]
        taken |= cells
        lowest = max(lowest, place["y"] + place["h"])


def test_every_panel_and_query_asks_the_data_source_that_is_chosen_above():
    content = dashboard()
    [variable] = content["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in content["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == chosen
            assert all(target["datasource"] == chosen for target in panel["targets"])


def test_what_is_provisioned_finds_the_dashboard_and_prometheus():
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    services = yaml.safe_load((GRAFANA.parents[1] / "compose.yaml").read_text())["services"]
    address = re.fullmatch(r"http://(\w+):(\d+)", source["url"])
    assert address is not None
    host, port = address.groups()
    assert services[host]["ports"][0].endswith(f":{port}")
    assert set(services[host]["networks"]) & set(services["grafana"]["networks"])
    [provider] = yaml.safe_load((GRAFANA / "provisioning/dashboards/gardenbus.yaml").read_text())["providers"]
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    assert mounted["./observability/grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./observability/grafana/provisioning"] == "/etc/grafana/provisioning"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/{DASHBOARD.name}"


def test_every_query_reads_what_is_exported():
    names = {metric.name for metrics in exported().values() for metric in metrics}
    for title, expression in queries():
        assert metrics_in(expression), title
        assert metrics_in(expression) <= names | FOREIGN, title


def test_what_the_placement_service_and_member_agents_count_is_shown():
    shown = {name.removesuffix("_bucket") for _title, expression in queries() for name in metrics_in(expression)}
    for service in ("placement", "memberagent"):
        own = {metric.name for metric in exported()[service] if metric.name.startswith(f"gardenbus_{service}_")}
        assert own
        assert own <= shown


@pytest.mark.skipif(promtool() is None, reason="there is no promtool here: .ci/prometheus brings it")
def test_every_query_is_one_that_prometheus_understands(tmp_path: Path):
    rules = [
        {"record": f"panel:query_{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_title, expression) in enumerate(queries())
    ]
    assert len(rules) > 60
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in run_promtool("check", "rules", str(file))
