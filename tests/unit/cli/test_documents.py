import json
from pathlib import Path

import pytest
import yaml

from gardenbus.cli.manifests.files import as_list, chunks, parts_of, read_files, sort_manifests, title
from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


def a_gardenlet(seed: str) -> Document:
    return {"kind": "GardenletConfiguration", "seedConfig": {"metadata": {"name": seed}}}


def test_files_and_folders_are_read_in_order_of_their_names(tmp_path: Path):
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([a_shoot("two"), a_shoot("three")]))
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "items": [a_shoot("one")]}))
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "empty.yaml").write_text("\n")
    alone = tmp_path / "alone"
    alone.write_text(yaml.safe_dump(a_seed("zero")))

    documents = read_files([alone, tmp_path])

    assert [document["metadata"]["name"] for document in documents] == ["zero", "one", "two", "three"]


def test_what_cannot_be_read_is_named(tmp_path: Path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    with pytest.raises(BadRequest, match=r"broken\.yaml"):
        read_files([broken])
    with pytest.raises(BadRequest, match="missing"):
        read_files([tmp_path / "missing"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadRequest, match=r"no \.yaml"):
        read_files([tmp_path / "folder"])


def test_configurations_are_told_from_manifests_which_come_in_the_order_of_their_references():
    found = sort_manifests(
        [a_shoot(), a_gardenlet("s1"), a_seed(), {"kind": "SchedulerConfiguration"}, a_cloudprofile(), a_project()]
    )

    assert [document["kind"] for document in found.manifests] == ["Project", "CloudProfile", "Seed", "Shoot"]
    assert found.gardenlets == [a_gardenlet("s1")]
    assert found.schedulers == [{"kind": "SchedulerConfiguration"}]
    assert found.controller_manager is None


def test_what_bindings_and_shoots_name_comes_before_them():
    kinds = ["Shoot", "SecretBinding", "Quota", "WorkloadIdentity", "CredentialsBinding", "Secret", "ConfigMap"]
    found = sort_manifests([{"kind": kind} for kind in kinds]).manifests
    named = ["Secret", "ConfigMap", "WorkloadIdentity", "Quota"]
    assert [document["kind"] for document in found] == [*named, "SecretBinding", "CredentialsBinding", "Shoot"]


def test_a_configuration_that_is_there_twice_is_refused():
    with pytest.raises(BadRequest, match=r"schedulerName default-scheduler: one\.yaml and two\.yaml"):
        sort_manifests(
            [a_project(), {"kind": "SchedulerConfiguration"}, {"kind": "SchedulerConfiguration"}],
            [Path("p.yaml"), Path("one.yaml"), Path("two.yaml")],
        )
    mine = {"kind": "SchedulerConfiguration", "schedulers": {"shoot": {"schedulerName": "mine"}}}
    assert len(sort_manifests([{"kind": "SchedulerConfiguration"}, mine]).schedulers) == 2
    with pytest.raises(BadRequest, match="twice for the seed s1"):
        sort_manifests([a_gardenlet("s1"), a_gardenlet("s2"), a_gardenlet("s1")])


def test_chunks_hold_at_most_so_many_bytes_and_lose_nothing():
    shoots = [a_shoot(f"s{number}") for number in range(20)]
    size = len(as_list(shoots[:1]))

    cut = list(chunks(shoots, largest=3 * size + 100))

    assert [shoot for chunk in cut for shoot in chunk] == shoots
    assert max(map(len, cut)) == 3
    assert list(chunks([])) == []
    assert list(chunks(shoots[:2], largest=1)) == [[shoots[0]], [shoots[1]]]


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_a_file_that_is_too_large_for_one_message_is_read_in_parts(kind: str):
    shoots = [a_shoot(f"s{number}") for number in range(50)]
    body = yaml.safe_dump_all(shoots) if kind == "yaml" else json.dumps({"kind": "List", "items": shoots})

    parts = list(parts_of(body.encode(), largest=8000))

    read = [document for part in parts for document in yaml.safe_load_all(part) if document]
    assert read == shoots
    assert len(parts) > 1
    assert max(map(len, parts)) <= 8000


def test_a_title_names_kind_namespace_and_name():
    assert title(a_shoot("apollo")) == "Shoot garden-dev/apollo"
    assert title(a_seed("aws")) == "Seed aws"
    assert title({"metadata": {"namespace": "dev", "name": "a"}}) == "an object without kind dev/a"
    assert title({"kind": "Shoot"}) == "Shoot (without name)"


def test_sizes_of_an_admission_controller_configuration_become_those_of_the_plugin():
    version = "admissioncontroller.config.gardener.cloud/v1alpha1"
    server = {"resourceAdmissionConfiguration": {"limits": [{"resources": ["shoots"], "size": "1Ki"}]}}
    controller = {"apiVersion": version, "kind": "AdmissionControllerConfiguration", "server": server}

    given = sort_manifests([controller, a_seed()])

    assert [document["kind"] for document in given.manifests] == ["Seed"]
    assert given.admission is not None
    assert given.admission["plugins"] == [{"name": "ResourceSize", "configuration": controller}]
    assert sort_manifests([{**controller, "server": {"webhooks": {"port": 1}}}]).admission is None


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("resourcemanager.config.gardener.cloud/v1alpha1", "ResourceManagerConfiguration"),
        ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"),
        ("shootdnsrewriting.admission.gardener.cloud/v1alpha1", "Configuration"),
    ],
)
def test_a_configuration_that_no_service_reads_is_rejected_by_its_kind(version: str, kind: str):
    with pytest.raises(BadRequest, match=rf"^kind: no service here reads {kind} \(.*AdmissionController"):
        sort_manifests([{"apiVersion": version, "kind": kind}])
