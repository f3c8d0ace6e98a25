"""What the page about placements shows and says is so."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.apiserver.domain.controller_owned_kinds import CONTROLLER_OWNED_KINDS
from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.cli.main import app
from gardenbus.common.api.configuration.member_agent import parse_configurations
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.kinds import by_word
from gardenbus.fleet.binding_states import ABSENT, TRANSITIONS
from gardenbus.fleet.cycle_result import FAILED
from gardenbus.memberagent.backend.local import FAIL_ANNOTATION

PAGE = (Path(__file__).parents[3] / "docs" / "placement.md").read_text()
PICTURE = (Path(__file__).parents[3] / "docs" / "assets" / "binding-life.svg").read_text()
SVG = "{http://www.w3.org/2000/svg}"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
DOCUMENTS = [document for block in BLOCKS for document in yaml.safe_load_all(block)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_every_manifest_on_the_page_is_accepted(document: Document):
    if document["kind"] == "MemberAgentConfiguration":
        parse_configurations(encode(document))
        return
    key_of(document)
    validate(with_creation_defaults(with_defaults(document)), None)


def test_the_simulation_on_the_page_is_what_comes_of_its_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("fleet.yaml").write_text(BLOCKS[0])

    response = CliRunner().invoke(app, ["simulate", "fleet.yaml"])

    shown = PAGE.split("```text\n", 1)[1].split("```", 1)[0]
    assert [line.split() for line in response.stdout.strip().splitlines()] == [
        line.split() for line in shown.strip().splitlines()
    ]


def test_the_picture_of_a_bindings_life_has_every_step_there_is_and_no_other():
    assert "](assets/binding-life.svg)" in PAGE
    root = ET.fromstring(PICTURE)
    lines = [line for line in root.iter(f"{SVG}path") if "marker-end" in line.attrib]
    drawn = [
        (ABSENT if old == "*" else old, ABSENT if new == "*" else new, by)
        for line in lines
        for old, new, all_of in re.findall(r"(\S+) (\S+): ([^;]+)", line.attrib["data-steps"])
        for by in all_of.split(", ")
    ]
    assert sorted(drawn) == sorted(tuple(each) for each in TRANSITIONS)
    words = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    for step in TRANSITIONS:
        assert all(each in words for each in step), step


def test_the_short_names_on_the_page_are_known():
    table = PAGE.split("## Kinds", 1)[1].split("![", 1)[0]
    words = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.+?) \|", table, re.MULTILINE)))
    assert len(words) == 16
    for word in words:
        by_word(word)
    kept = {by_word(word).singular for word in ("csps", "sps", "crs", "rss", "crb", "rb", "cros", "ros", "work")}
    assert kept == CONTROLLER_OWNED_KINDS


def test_what_is_named_in_code_is_called_so():
    assert f"`{FAILED}`" in PAGE
    assert f"`{FAIL_ANNOTATION}`" in PAGE
