"""What the page about placements shows and says is so."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.apiserver.decide.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.decide.service_objects import SERVICE_KINDS
from gardenbus.apiserver.decide.validation import validate
from gardenbus.cli.main import app
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.kinds import by_word
from gardenbus.fleet.binding_states import ABSENT, TRANSITIONS
from gardenbus.memberagent.backend.local import FAIL_ANNOTATION
from gardenbus.memberagent.decide.configuration import parse_configurations
from gardenbus.placement.decide.scheduled import FAILED

PAGE = (Path(__file__).parents[3] / "docs" / "placement.md").read_text()
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

    answer = CliRunner().invoke(app, ["simulate", "fleet.yaml"])

    shown = PAGE.split("```text\n", 1)[1].split("```", 1)[0]
    assert [line.split() for line in answer.stdout.strip().splitlines()] == [
        line.split() for line in shown.strip().splitlines()
    ]


def test_the_picture_of_a_bindings_life_has_every_step_there_is_and_no_other():
    picture = PAGE.split("stateDiagram-v2\n", 1)[1].split("```", 1)[0]
    drawn = {
        (ABSENT if old == "[*]" else old, ABSENT if new == "[*]" else new, by)
        for old, new, all_of in re.findall(r"^ +(\S+) --> (\S+): (.+)$", picture, re.MULTILINE)
        for by in all_of.split(", ")
    }
    assert drawn == {tuple(each) for each in TRANSITIONS}


def test_the_short_names_on_the_page_are_known():
    table = PAGE.split("## Who is who", 1)[1].split("```", 1)[0]
    words = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.+?) \|", table, re.MULTILINE)))
    assert len(words) == 12
    for word in words:
        by_word(word)
    kept = {by_word(word).singular for word in ("csps", "sps", "crs", "rss", "crb", "rb", "work")}
    assert kept == SERVICE_KINDS


def test_what_is_named_in_code_is_called_so():
    assert f"`{FAILED}`" in PAGE
    assert f"`{FAIL_ANNOTATION}`" in PAGE
