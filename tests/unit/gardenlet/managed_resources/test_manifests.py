"""Manifests come out of Secrets as Gardener reads them: one broken document leaves the others alone."""

import json
from collections.abc import Mapping

import pytest

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.managed_resources.manifests import (
    SecretData,
    checksum_of,
    decode_secrets,
    decoding_message,
    in_apply_order,
    is_left_out,
    labels_to_inject,
    with_labels,
    with_namespace,
)
from gardenbus.gardenlet.domain.managed_resources.references import (
    Equivalences,
    ResourceIndex,
    ResourceReference,
    in_status_order,
    reference_of,
)


def no_compression(value: bytes) -> bytes:
    raise ValueError(f"{value[:1]!r} is not compressed")


def decoded(data: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Names and problems of a Secret's documents."""
    secret = SecretData("shoot--dev--hermes", "mr-garbage", {key: text.encode() for key, text in data.items()})
    bundle = decode_secrets([secret], no_compression)
    return [str(each.document["metadata"]["name"]) for each in bundle.manifests], list(bundle.problems)


def a_document(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def test_keys_are_read_in_their_order_and_each_is_a_stream_of_documents() -> None:
    data = {
        "z.yaml": a_document("last"),
        "a.yaml": f"---\n{a_document('one')}---\n# empty\n--- # two\n{a_document('two')}",
    }
    assert decoded(data) == (["one", "two", "last"], [])


def test_json_is_read_one_document_after_the_other() -> None:
    documents = "\n".join(json.dumps({"kind": "ConfigMap", "metadata": {"name": name}}) for name in ("a", "b"))
    assert decoded({"objects.json": documents}) == (["a", "b"], [])


def test_yaml_that_begins_with_a_brace_is_yaml() -> None:
    assert decoded({"k": "{kind: ConfigMap, metadata: {name: flow}}\n---\n" + a_document("block")})[0] == [
        "flow",
        "block",
    ]


def test_a_broken_document_is_named_by_its_index_and_the_others_are_there() -> None:
    names, problems = decoded({"objects.yaml": f"{a_document('d-good')}---\n{{{{{{\n---\n{a_document('e-good')}"})
    assert names == ["d-good", "e-good"]
    (problem,) = problems
    assert problem.startswith(
        "Could not decode resource at index 1 in 'objects.yaml' in secret 'shoot--dev--hermes/mr-garbage': "
        "error converting YAML to JSON: yaml: "
    )
    assert decoding_message(problems) == f"Could not decode all new resources: [{problem}]"


@pytest.mark.parametrize(("text", "kind"), [("- a", "array"), ("7", "number"), ("text", "string")])
def test_a_document_that_is_no_mapping_is_a_problem(text: str, kind: str) -> None:
    (problem,) = decoded({"k": text})[1]
    assert f"cannot unmarshal {kind} into Go value" in problem


def test_a_value_that_is_not_compressed_as_its_key_says_is_a_problem() -> None:
    assert "b'a' is not compressed" in decoded({"data.yaml.br": a_document("x")})[1][0]


def test_a_compressed_value_is_decompressed() -> None:
    secret = SecretData("ns", "s", {"data.yaml.br": b"compressed"})
    bundle = decode_secrets([secret], lambda _value: a_document("inside").encode())
    assert [each.document["metadata"]["name"] for each in bundle.manifests] == ["inside"]


def test_the_checksum_counts_a_value_once_for_each_of_its_objects() -> None:
    one = decode_secrets([SecretData("n", "s", {"k": a_document("a").encode()})], no_compression)
    two = decode_secrets(
        [SecretData("n", "s", {"k": (a_document("a") + "---\n" + a_document("b")).encode()})], no_compression
    )
    assert checksum_of([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert (
        len({checksum_of(one.manifests), checksum_of(two.manifests), checksum_of([*two.manifests, two.manifests[0]])})
        == 3
    )


@pytest.mark.parametrize(
    ("kind", "namespace", "namespaced", "expected"),
    [
        ("ConfigMap", "", True, "default"),
        ("ConfigMap", "there", True, "there"),
        ("ClusterRole", "there", False, None),
        ("ClusterRole", "", False, None),
        ("Thing", "", None, "default"),
        ("Thing", "there", None, "there"),
        ("Namespace", "", None, None),
    ],
)
def test_namespaces_are_as_the_kind_needs_them(
    kind: str, namespace: str, namespaced: bool | None, expected: str | None
) -> None:
    document = {"kind": kind, "metadata": {"name": "x", **({"namespace": namespace} if namespace else {})}}
    assert with_namespace(document, namespaced=namespaced)["metadata"].get("namespace") == expected


def test_labels_go_into_metadata_pods_and_claims_but_into_no_selector() -> None:
    managed_resource = {"spec": {"injectLabels": {"foo": "bar"}}}
    stateful_set: Document = {
        "metadata": {"name": "db", "labels": {"app": "db", "foo": "own"}},
        "spec": {
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        },
    }
    before = json.dumps(stateful_set)
    labels = labels_to_inject(managed_resource)
    assert labels == {"foo": "bar", "resources.gardener.cloud/managed-by": "gardener"}
    labelled = with_labels(stateful_set, labels)
    assert labelled["metadata"]["labels"] == {"app": "db", **labels}
    assert labelled["spec"]["template"]["metadata"]["labels"] == {"app": "db", **labels}
    assert labelled["spec"]["volumeClaimTemplates"][0]["metadata"] == {"name": "data", "labels": labels}
    assert labelled["spec"]["selector"] == {"matchLabels": {"app": "db"}}
    assert json.dumps(stateful_set) == before


def test_no_labels_go_into_the_jobs_of_a_cron_job() -> None:
    cron_job: Document = {"metadata": {}, "spec": {"jobTemplate": {"spec": {"template": {"metadata": {}}}}}}
    assert with_labels(cron_job, {"a": "b"})["spec"] == cron_job["spec"]


def test_mode_ignore_leaves_an_object_out() -> None:
    annotations = {"resources.gardener.cloud/mode": "Ignore"}
    assert is_left_out({"metadata": {"annotations": annotations}})
    assert not is_left_out({"metadata": {"annotations": {"resources.gardener.cloud/mode": "ignore"}}})


def test_objects_are_applied_in_the_order_of_their_kinds_and_names_unknown_kinds_last() -> None:
    kinds = (
        ("Widget", "b"),
        ("Deployment", "a"),
        ("Secret", "b"),
        ("Secret", "a"),
        ("Namespace", "n"),
        ("Gadget", "z"),
    )
    documents: list[Document] = [{"kind": kind, "metadata": {"name": name}} for kind, name in kinds]
    ordered = [kinds[position] for position in in_apply_order(documents)]
    assert ordered == [
        ("Namespace", "n"),
        ("Secret", "a"),
        ("Secret", "b"),
        ("Deployment", "a"),
        ("Gadget", "z"),
        ("Widget", "b"),
    ]


def test_a_reference_has_the_manifests_labels_and_annotations_and_the_injected_labels() -> None:
    document: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "target", "annotations": {"a": "b"}, "labels": {"own": "1"}},
    }
    assert reference_of(document, {"foo": "bar"}).document == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "one",
        "namespace": "target",
        "labels": {"own": "1", "foo": "bar"},
        "annotations": {"a": "b"},
    }


def a_reference(api_version: str, kind: str, name: str = "x", namespace: str = "ns") -> ResourceReference:
    return ResourceReference(api_version, kind, namespace, name)


def test_references_are_listed_by_group_kind_namespace_and_name() -> None:
    references = [
        a_reference("apps/v1", "Deployment"),
        a_reference("v1", "Secret"),
        a_reference("v1", "ConfigMap", "b"),
    ]
    references.append(a_reference("v1", "ConfigMap", "a"))
    assert [(each.kind, each.name) for each in in_status_order(references)] == [
        ("ConfigMap", "a"),
        ("ConfigMap", "b"),
        ("Secret", "x"),
        ("Deployment", "x"),
    ]


def test_messages_name_an_object_without_a_namespace_by_the_default_one() -> None:
    assert a_reference("nobody.example/v1", "Thing", namespace="").text == "nobody.example/v1/Thing/default/x"
    assert a_reference("v1", "Namespace", namespace="").text == "v1/Namespace//x"


def test_what_no_manifest_means_any_more_is_surplus() -> None:
    index = ResourceIndex([a_reference("v1", "Secret"), a_reference("v1", "ConfigMap")], Equivalences({}))
    assert index.find(a_reference("v1", "Secret")) is not None
    assert [each.kind for each in index.surplus()] == ["ConfigMap"]


def test_another_version_of_a_kind_is_the_same_object() -> None:
    index = ResourceIndex([a_reference("batch/v1beta1", "CronJob")], Equivalences({}))
    assert index.find(a_reference("batch/v1", "CronJob")) is not None
    assert index.surplus() == []


def test_kinds_that_have_moved_between_groups_are_the_same_object() -> None:
    index = ResourceIndex([a_reference("extensions/v1beta1", "Ingress")], Equivalences({}))
    assert index.find(a_reference("networking.k8s.io/v1", "Ingress")) is not None
    assert index.surplus() == []


def test_equivalences_of_a_managed_resource_join_those_there_are() -> None:
    kinds = [{"group": "apps", "kind": "Deployment"}, {"group": "example.com", "kind": "Rollout"}]
    equivalences = Equivalences({"spec": {"equivalences": [kinds, "nonsense"]}})
    assert ("extensions", "Deployment") in equivalences.of("example.com", "Rollout")
    assert equivalences.of("", "Secret") == frozenset()
    index = ResourceIndex([a_reference("example.com/v1", "Rollout")], equivalences)
    assert index.find(a_reference("apps/v1", "Deployment")) is not None
