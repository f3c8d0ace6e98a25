"""The fields that are known: all of Gardener's, all that is read here, and all that the examples use."""

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import pytest

from gardenbus.apiserver.domain.fields.check import field_faults, path_text
from gardenbus.apiserver.domain.fields.unused import DEPRECATED, UNUSED, found_fields
from gardenbus.apiserver.domain.kind_actors import ACTORS
from gardenbus.common.api.document import Document
from gardenbus.common.api.fields import gardener
from gardenbus.common.api.fields.kinds import kinds_with_shape, sent_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.kinds import KINDS, understood_kinds
from gardenbus.common.api.manifests.parser import parse
from gardenbus.docs.gardener_fields import module_text
from gardenbus.docs.json_schemas import KIND_VIEWS
from tests.support.builders import a_seed, a_shoot
from tests.support.example_files import example_manifests
from tests.support.shared_files import required_shared

ROOT = Path(__file__).resolve().parents[3]
ONLY_CONTROLLERS_WRITE = frozenset(
    {
        "ClusterResourceBinding",
        "ClusterResourceOverrideSnapshot",
        "ClusterResourceSnapshot",
        "ClusterSchedulingPolicySnapshot",
        "Event",
        "ResourceBinding",
        "ResourceOverrideSnapshot",
        "ResourceSnapshot",
        "SchedulingPolicySnapshot",
        "Work",
    }
)


def faults(document: Document) -> list[str]:
    shape = sent_shape(str(document["apiVersion"]), str(document["kind"]))
    found = () if shape is None else field_faults(document, shape, kind=str(document["kind"]))
    return [f"{fault.problem.field}: {fault.problem.message}" for fault in found]


def shape_of(kind: str) -> Shape | None:
    return sent_shape(KINDS[kind.lower()].api_version, kind)


def test_the_module_has_exactly_the_fields_of_gardener() -> None:
    fields = json.loads(required_shared("spec/fields.json").read_text())
    assert Path(gardener.__file__).read_text() == module_text(fields)


def test_every_kind_that_people_write_has_its_fields() -> None:
    without = {kind.kind for kind in understood_kinds() if shape_of(kind.kind) is None}
    assert without == ONLY_CONTROLLERS_WRITE


def inside(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return inside(next(each for each in get_args(hint) if each is not type(None)))
    return inside(get_args(hint)[0]) if get_origin(hint) in (tuple, list) else hint


def inner(kind: FieldType) -> FieldType:
    while isinstance(kind, ListOf | MapOf):
        kind = kind[0]
    return kind


def read_paths(view: type[msgspec.Struct]) -> Iterator[str]:
    hints = get_type_hints(view)
    for field in msgspec.structs.fields(view):
        yield field.encode_name
        below = inside(hints[field.name])
        if isinstance(below, type) and issubclass(below, msgspec.Struct):
            yield from (f"{field.encode_name}.{path}" for path in read_paths(below))


@pytest.mark.parametrize("kind", sorted(set(KIND_VIEWS) - ONLY_CONTROLLERS_WRITE))
def test_everything_that_is_read_is_known(kind: str) -> None:
    for path in read_paths(KIND_VIEWS[kind]):
        if path.startswith(("status", "metadata")):
            continue
        here: FieldType = cast("Shape", shape_of(kind))
        for step in path.split("."):
            if not isinstance(here, Shape):
                break  # an open part, of which a view reads a corner
            assert step in here.fields, path
            here = inner(here.fields[step])


def manifests_below(folder: Path) -> Iterator[tuple[Path, Document]]:
    for path in sorted((*folder.rglob("*.yaml"), *folder.glob("landscape-*.json"))):
        yield from ((path, document) for document in parse(path.read_bytes()))


@pytest.mark.parametrize("folder", ["examples", "golden"])
def test_manifests_of_gardener_pass(folder: str) -> None:
    found = [(path.name, faults(each)) for path, each in manifests_below(required_shared(folder))]
    assert len(found) > 20
    assert [one for one in found if one[1]] == []


NEEDED = "handler: "
"""Beginning of the warning of a field without effect that no ExposureClass can leave out."""


def test_our_examples_pass_and_nothing_in_them_is_without_effect() -> None:
    found = [(path, document) for path in example_manifests() for document in parse(path.read_bytes())]
    assert len(found) > 50
    assert [(path, faults(each)) for path, each in found if faults(each)] == []
    warned = [(path, each.warning) for path, document in found for each in found_fields(document)]
    assert [(path, warning) for path, warning in warned if not warning.startswith(NEEDED)] == []


OF_A_VERSION_WITHOUT_A_SHAPE = ("ControllerDeployment", "providerConfig")
WITH_A_SHAPE = [note for note in (*UNUSED, *DEPRECATED) if (note.kind, note.path) != OF_A_VERSION_WITHOUT_A_SHAPE]


@pytest.mark.parametrize("note", WITH_A_SHAPE, ids=str)
def test_each_field_that_is_warned_of_exists(note: Any) -> None:
    here: FieldType = cast("Shape", shape_of(note.kind))
    for step in note.path.replace("[]", ".[]").split("."):
        if step == "[]":
            assert isinstance(here, ListOf)
            here = here.entry
        else:
            assert isinstance(here, Shape)
            here = here.fields[step]


ONE_VIEW_FOR_ALL_SELECTORS = ("Shoot", "spec.seedSelector.providerTypes")


@pytest.mark.parametrize("note", UNUSED, ids=str)
def test_no_field_that_is_called_unused_is_read(note: Any) -> None:
    if note.kind in KIND_VIEWS and (note.kind, note.path) != ONE_VIEW_FOR_ALL_SELECTORS:
        assert note.path not in set(read_paths(KIND_VIEWS[note.kind]))


@pytest.mark.parametrize("kind", ["CloudProfile", "NamespacedCloudProfile"])
def test_the_limit_of_nodes_that_admission_keeps_shoots_to_is_not_called_unused(kind: str) -> None:
    assert list(found_fields({"kind": kind, "spec": {"limits": {"maxNodesTotal": 5}}})) == []


def test_templates_are_warned_of_like_what_they_become() -> None:
    template: Document = {"spec": {"monitoring": {"alerting": {}}, "cloudProfileName": "aws"}}
    managed_seed_set = {"kind": "ManagedSeedSet", "spec": {"shootTemplate": template}}
    warned = {path_text(one.path) for one in found_fields(managed_seed_set)}
    assert warned == {"spec.shootTemplate.spec.monitoring", "spec.shootTemplate.spec.cloudProfileName"}


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"purpos": "testing"}, "spec.purpos: is no field of a Shoot; did you mean `purpose`?"),
        ({"hibernaton": {"enabled": True}}, "did you mean `hibernation`?"),
        ({"workers": []}, "spec.workers: is no field of a Shoot here; did you mean `spec.provider.workers`?"),
        (
            {"provider": {"workers": [{"nam": "a"}]}},
            "spec.provider.workers[0].nam: is no field of a Shoot; did you mean",
        ),
        (
            {"provider": {"workers": [{"minimum": "1"}]}},
            "spec.provider.workers[0].minimum: must be a whole number, not '1'",
        ),
        ({"region": 5}, "spec.region: must be a string, not 5: put it in quotes"),
        ({"hibernation": {"enabled": "yes"}}, "spec.hibernation.enabled: must be true or false, not 'yes'"),
        (
            {"kubernetes": {"kubelet": {"imageMinimumGCAge": "1 hour"}}},
            "spec.kubernetes.kubelet.imageMinimumGCAge: must be a duration, as 90s or 1h30m, not '1 hour'",
        ),
        (
            {"kubernetes": {"kubelet": {"kubeReserved": {"memory": "2Gib"}}}},
            "spec.kubernetes.kubelet.kubeReserved.memory: must be a quantity, as 500m or 2Gi, not '2Gib'",
        ),
        ({"networking": []}, "spec.networking: must be a mapping, not a list"),
        ({"tolerations": {}}, "spec.tolerations: must be a list, not a mapping"),
        (
            {"seedSelector": {"matchLabels": {"a.b/c": 1}}},
            "spec.seedSelector.matchLabels[a.b/c]: must be a string, not 1",
        ),
    ],
)
def test_a_fault_names_its_path_and_what_was_meant(changes: Document, reported: str) -> None:
    (fault,) = faults(a_shoot(spec=changes))
    assert reported in fault


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"annotations": {"anything/at-all": "x"}, "labels": {"any": "label"}}},
        {"spec": {"provider": {"infrastructureConfig": {"apiVersion": "aws/v1", "networks": [{"purpos": 1}]}}}},
        {"spec": {"networking": {"providerConfig": {"no": {"such": "field"}}}}},
        {"spec": {"purpose": None, "hibernation": {"schedules": None}}},
        {"status": {"nobody": "looks at it"}},
        {"spec": {"kubernetes": {"kubeAPIServer": {"runtimeConfig": {"a/b": True}}}}},
    ],
)
def test_open_parts_stay_open(changes: Document) -> None:
    assert faults(a_shoot(**changes)) == []


@pytest.mark.parametrize("reserved", ["2Gi", "500m", "1e3", 2, 0.5, None])
@pytest.mark.parametrize("age", ["90s", "1h30m", "1.5h", "0", None])
def test_quantities_and_durations_are_written_as_gardener_reads_them(reserved: object, age: object) -> None:
    kubelet = {"kubeReserved": {"memory": reserved}, "imageMinimumGCAge": age}
    assert faults(a_shoot(spec={"kubernetes": {"kubelet": kubelet}})) == []


def test_a_whole_number_may_be_written_as_a_float() -> None:
    def faults_of(minimum: str) -> list[str]:
        worker = {"name": "a", "minimum": "MINIMUM"}
        text = json.dumps(a_shoot(spec={"provider": {"workers": [worker]}})).replace('"MINIMUM"', minimum)
        return faults(parse(text.encode())[0])

    assert faults_of("1.0") == []
    assert faults_of("1.5") != []
    assert faults_of("1e300") != []


def test_null_is_no_field() -> None:
    assert faults(a_seed(spec={"provider": {"zones": None}})) == []
    (fault,) = faults({**a_seed(), "specs": None})
    assert "did you mean `spec`?" in fault


def test_a_shape_is_there_for_each_of_gardener_s_kinds() -> None:
    assert ("core.gardener.cloud/v1beta1", "Shoot") in kinds_with_shape()
    assert sent_shape("core.gardener.cloud/v1beta1", "Nothing") is None
    assert sent_shape("v1", "Shoot") is None


@pytest.mark.parametrize("kind", sorted(set(ACTORS) - ONLY_CONTROLLERS_WRITE - {"ControllerRevision"}))
def test_every_kind_that_something_acts_on_and_that_people_send_has_its_fields(kind: str) -> None:
    spec = KINDS.get(kind.lower()) or next(each for each in KINDS.values() if each.kind == kind)
    assert (spec.api_version, kind) in kinds_with_shape()


@pytest.mark.parametrize("kind", ["OpenIDConnectPreset", "ClusterOpenIDConnectPreset"])
def test_a_misspelt_field_of_a_preset_is_found(kind: str) -> None:
    shape = sent_shape("settings.gardener.cloud/v1alpha1", kind)
    assert shape is not None
    server = {"clientId": "me", "issuerURL": "https://there"}
    given = {"apiVersion": "settings.gardener.cloud/v1alpha1", "kind": kind, "spec": {"server": server}}
    (fault,) = field_faults(given, shape, kind=kind)
    assert fault.path == ("spec", "server", "clientId")
    article = "a" if kind.startswith("C") else "an"
    assert f"is no field of {article} {kind}; did you mean `clientID`?" in fault.message
