"""`get`: what is asked for, and how it is printed."""

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.client.resource_args import ResourceArgs, parse_resources
from gardenbus.cli.client.watch import WatchCache
from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.cli.output.printers import parse_printer, render_change, render_documents, sort_key
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.fake_api import FakeApi

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


@pytest.fixture
def bus() -> FakeApi:
    return FakeApi(
        a_project(),
        a_seed("aws", shoots=10),
        a_seed("gcp", shoots=3),
        a_shoot("apollo", spec={"seedName": "aws"}, metadata={"generation": 2, "labels": {"tier": "gold"}}),
        a_shoot("bolt", metadata={"generation": 10}),
        a_shoot("apollo", metadata={"namespace": "garden-core", "generation": 1}),
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, bus: FakeApi) -> Any:
    def call(*words: str) -> Result:
        monkeypatch.setattr(options, "connected", bus.connected)
        return CliRunner().invoke(app, ["get", *words, "--nats-url", "nats://nowhere:1"])

    return call


def test_an_object_is_shown_in_the_version_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement"}
    fleet = FakeApi({**stored, "metadata": {"name": "lights"}, "spec": {}})
    monkeypatch.setattr(options, "connected", fleet.connected)
    for words in (["crp.v1.placement.kubernetes-fleet.io", "lights"], ["crp.v1.placement.kubernetes-fleet.io"]):
        call = ["get", *words, "-o", "jsonpath={..apiVersion}", "--nats-url", "nats://nowhere:1"]
        assert "placement.kubernetes-fleet.io/v1" in CliRunner().invoke(app, call).stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("shoots", [("shoot", ())]),
        ("shoot a b a", [("shoot", ("a", "b"))]),
        ("shoots,seeds", [("shoot", ()), ("seed", ())]),
        ("sh00t", [("sh00t", ())]),
        ("cp,mss x", [("cloudprofile", ("x",)), ("managedseedset", ("x",))]),
        ("shoot/a seed/b shoots/c", [("shoot", ("a", "c")), ("seed", ("b",))]),
        ("shoot/a b", [("shoot", ("a", "b"))]),
        ("shoot dev/a", [("shoot", ("dev/a",))]),
        ("seed.core.gardener.cloud/b shoots.v1beta1.core.gardener.cloud/a", [("seed", ("b",)), ("shoot", ("a",))]),
        (
            "shoots.core.gardener.cloud,crp.placement.kubernetes-fleet.io",
            [("shoot", ()), ("clusterresourceplacement", ())],
        ),
        ("sh,sd", [("shoot", ()), ("seed", ())]),
        ("etcds.druid.gardener.cloud x", [("etcds", ("x",))]),
    ],
)
def test_kinds_and_names_are_meant_as_kubectl_means_them(words: str, wanted: list[tuple[str, tuple[str, ...]]]):
    assert [(meant.kind, meant.names) for meant in parse_resources(words.split())] == wanted


@pytest.mark.parametrize("words", ["shoot/", "/a", ",", "shoot/a seed/"])
def test_what_is_neither_kind_nor_name_is_refused(words: str):
    with pytest.raises(BadRequest, match="KIND"):
        parse_resources(words.split())


@pytest.mark.parametrize(
    ("words", "problem"),
    [("shoots.apps", "did you mean shoots.core.gardener.cloud"), ("seeds.example.com/x", "is not known here")],
)
def test_a_kind_of_another_group_is_refused(words: str, problem: str):
    with pytest.raises(BadRequest, match=problem):
        parse_resources(words.split())


def test_what_get_prints_as_names_get_and_the_others_take(run: Any):
    names = run("seeds,shoots", "-o", "name").stdout.split()

    assert names[0] == "seed.core.gardener.cloud/aws"
    assert run(*names[:2], "shoot.core.gardener.cloud/bolt", "-o", "name").stdout.split() == [*names[:2], names[-1]]


def test_several_kinds_are_tables_below_each_other_with_names_that_tell(run: Any):
    result = run("seed/aws", "shoot/bolt")

    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["NAME", "PROVIDER"],
        ["seed/aws", "aws"],
        [],
        ["NAMESPACE", "NAME"],
        ["garden-dev", "shoot/bolt"],
    ]


def test_who_is_not_there_is_said_and_the_others_are_shown(run: Any):
    result = run("seed", "aws", "nobody", "-o", "name")

    assert result.exit_code == 1
    assert result.stdout == "seed.core.gardener.cloud/aws\n"
    assert "nobody not found" in result.stderr


def test_rows_without_titles_and_with_labels(run: Any):
    bare = run("shoot", "bolt", "--no-headers").stdout
    labelled = run("shoot", "garden-dev/apollo", "--show-labels").stdout.splitlines()

    assert "NAME" not in bare
    assert bare.startswith("garden-dev")
    assert labelled[0].endswith("LABELS")
    assert labelled[1].endswith("tier=gold")


def test_rows_are_sorted_by_numbers_as_numbers(run: Any):
    columns = "-o", "custom-columns=NS:.metadata.namespace,NAME:.metadata.name,GENERATION:.metadata.generation"

    assert run("shoots", "--sort-by", ".metadata.generation", *columns).stdout == (
        "NS            NAME     GENERATION\n"
        "garden-core   apollo   1\n"
        "garden-dev    apollo   2\n"
        "garden-dev    bolt     10\n"
    )


def test_what_is_missing_comes_first_in_an_order_and_is_none_in_a_column():
    seeds = [{"a": "x"}, {"a": None}, {"a": 3}, {}]

    assert sorted(seeds, key=sort_key(".a")) == [{"a": None}, {}, {"a": 3}, {"a": "x"}]


def test_quantities_are_sorted_by_what_they_amount_to() -> None:
    amounts = ["1.34.1", "10Gi", "200", "500Mi", "9Gi", "30", "1500m", "apollo"]
    rows = sorted(({"a": each} for each in amounts), key=sort_key(".a"))
    assert [row["a"] for row in rows] == ["1500m", "30", "200", "500Mi", "9Gi", "10Gi", "1.34.1", "apollo"]
    assert render_documents(parse_printer("custom-columns=A:.a,B:.b[*]"), [{"b": [1, "y"]}], is_one=True) == (
        "A        B\n<none>   1,y\n"
    )


def test_a_template_sees_one_object_or_a_list(run: Any):
    assert run("shoot", "bolt", "-o", "jsonpath={.metadata.name}").stdout == "bolt"
    assert run("seeds", "-o", "jsonpath={.items[*].metadata.name}").stdout == "aws gcp"
    assert run("shoots", "-n", "garden-dev", "-ojsonpath={..generation}").stdout == "2 10"


def test_documents_stand_alone_when_they_were_asked_for_by_name(run: Any):
    assert json.loads(run("seed", "aws", "-o", "json").stdout)["kind"] == "Seed"
    assert json.loads(run("seed", "aws", "gcp", "-o", "json").stdout)["kind"] == "List"
    assert json.loads(run("seeds", "-o", "json").stdout)["kind"] == "List"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["shoots", "-o", "xml"], "there is wide, yaml, json, name"),
        (["shoots", "-o", "jsonpath"], "needs a template"),
        (["shoots", "-o", "jsonpath={.a"], "no closing brace"),
        (["shoots", "-o", "custom-columns=A"], "write TITLE:.path"),
        (["shoots", "-o", "custom-columns="], "needs columns"),
        (["shoots", "--sort-by", "{.a[}"], "a number, a quoted key"),
        (["shoot", "a", "-l", "a=b"], "not both"),
        (["shoots", "-A", "-n", "x"], "give one of them"),
        (["events", "-w"], "gardenbus events -w"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(run: Any, words: list[str], problem: str):
    result = run(*words)

    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_watch_tells_what_is_new_once_and_what_leaves_the_selection_as_deleted():
    def shoot(version: int, **labels: str) -> dict[str, Any]:
        return a_shoot("apollo", metadata={"resourceVersion": str(version), "labels": labels})

    existing = WatchCache(
        [ResourceArgs("shoot", (), is_namespaced=True)], None, lambda document: "tier" in document["metadata"]["labels"]
    )
    existing.note("shoot", shoot(3, tier="gold"))

    assert existing.change(APOLLO, shoot(3, tier="gold")) is None
    assert existing.change(APOLLO, shoot(4, tier="iron")) == ("modified", APOLLO, shoot(4, tier="iron"))
    assert existing.change(APOLLO, shoot(5)) == ("deleted", APOLLO, shoot(4, tier="iron"))
    assert existing.change(APOLLO, shoot(6)) is None
    assert existing.change(APOLLO, shoot(7, tier="gold")) == ("added", APOLLO, shoot(7, tier="gold"))
    assert existing.change(APOLLO, None) == ("deleted", APOLLO, shoot(7, tier="gold"))
    assert existing.change(APOLLO, None) is None


def test_a_watch_is_about_the_names_and_the_namespace_that_were_asked_for():
    by_name = WatchCache([ResourceArgs("shoot", ("garden-dev/apollo", "bolt"), is_namespaced=True)], None, None)
    by_namespace = WatchCache(
        [ResourceArgs("shoot", (), is_namespaced=True), ResourceArgs("seed", (), is_namespaced=False)],
        "garden-dev",
        None,
    )

    assert by_name.is_selected(APOLLO)
    assert by_name.is_selected(APOLLO._replace(name="bolt", namespace="anywhere"))
    assert not by_name.is_selected(APOLLO._replace(namespace="other"))
    assert by_namespace.is_selected(APOLLO)
    assert by_namespace.is_selected(ObjectKey("seed", "", "aws"))
    assert not by_namespace.is_selected(APOLLO._replace(namespace="other"))
    assert not by_namespace.is_selected(APOLLO._replace(kind="project"))


def test_documents_that_come_one_after_the_other_can_be_told_apart():
    assert render_change(parse_printer("json"), {"a": 1}) == '{\n  "a": 1\n}\n'
    assert render_change(parse_printer("yaml"), {"a": 1}) == "---\na: 1\n"
    assert render_change(parse_printer("jsonpath={.a}"), {"a": 1}) == "1\n"
    assert render_change(parse_printer("custom-columns=A:.a"), {"a": 1}) == "1\n"


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (
            ["--field-selector", "spec.seedname=aws"],
            "the field spec.seedname; did you mean spec.seedName?",
        ),
        (["--field-selector", "spec.nowhere!=x"], "--field-selector: no shoot has the field spec.nowhere"),
        (["--sort-by", ".metadata.generatoin"], "did you mean metadata.generation?"),
        (["--sort-by", "{.spec.nowhere.deep}"], "--sort-by: no shoot has the field spec.nowhere.deep"),
    ],
)
def test_a_path_that_no_object_has_is_warned_of(run: Any, words: list[str], warning: str):
    result = run("shoots", *words, "-o", "name")

    assert result.exit_code == 0
    assert warning in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--field-selector", "spec.seedName=gcp"],
        ["--field-selector", "spec.seedName!=aws"],
        ["--sort-by", "{.metadata.labels.tier}"],
        ["--sort-by", "{.status.conditions[0].type}"],
    ],
)
def test_a_path_that_some_object_has_is_not(run: Any, words: list[str]):
    assert "warning" not in run("shoots", *words).stderr


def names_in(result: Result) -> list[str]:
    return [line.split()[1] for line in result.stdout.splitlines()[1:]]


@pytest.mark.parametrize(
    "way", [(), ("-o", "wide"), ("-o", "custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name")]
)
def test_a_long_list_is_printed_in_chunks_with_its_titles_once(run: Any, way: tuple[str, ...]):
    whole, chunked = run("shoots", *way), run("shoots", *way, "--chunk-size", "1")

    assert names_in(chunked) == names_in(whole) == ["apollo", "apollo", "bolt"]
    assert chunked.stdout.count("NAMESPACE") == 1
    names = run("shoots", "-o", "name", "--chunk-size", "2").stdout
    assert names == run("shoots", "-o", "name").stdout


def test_a_limit_says_that_there_are_more(run: Any):
    limited = run("shoots", "--limit", "2")

    assert names_in(limited) == ["apollo", "apollo"]
    assert "--limit 2: there are more" in limited.stderr
    assert names_in(run("shoots", "--limit", "3")) == ["apollo", "apollo", "bolt"]
    assert run("shoots", "--limit", "3").stderr == ""
    assert len(json.loads(run("shoots", "--limit", "1", "-o", "json").stdout)["items"]) == 1


def test_seeds_are_shown_with_their_use_and_no_shoot_is_read(run: Any, bus: FakeApi):
    result = run("seeds")

    assert [re.findall(r"\d+/\d+", line) for line in result.stdout.splitlines()[1:]] == [["1/10"], ["0/3"]]
    assert "list.shoot" not in {tail for tail, _ in bus.requests}
