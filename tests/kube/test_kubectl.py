"""kubectl on the Kubernetes API of a landscape: an operator's session."""

import json
import subprocess
from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.support.kubernetes_api import KubernetesApi, missing
from tests.support.kubernetes_manifests import find_kubectl

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def kubectl(kubernetes_api: KubernetesApi) -> Kubectl:
    """kubectl as the operator of a landscape with the example."""
    program = find_kubectl()
    if program is None:
        missing("there is no kubectl: .ci/kube builds it")
    assert program is not None

    def run(*arguments: str, given: Any = None) -> "subprocess.CompletedProcess[str]":
        return kubernetes_api.run(program, *arguments, given=None if given is None else json.dumps(given))

    return run


def test_it_says_who_one_is_and_what_one_may(kubectl: Kubectl) -> None:
    assert "operator" in kubectl("auth", "whoami").stdout
    assert kubectl("auth", "can-i", "create", "shoots").stdout.strip() == "yes"
    assert kubectl("version").returncode == 0


def test_it_shows_tables_with_gardeners_columns(kubectl: Kubectl) -> None:
    heading = kubectl("get", "shoots", "-A").stdout.splitlines()[0].split("  ")
    assert [each.strip() for each in heading if each.strip()] == [
        *("NAMESPACE", "NAME", "CLOUDPROFILE", "PROVIDER", "REGION", "K8S VERSION"),
        *("HIBERNATION", "LAST OPERATION", "STATUS", "AGE"),
    ]
    assert "aws-cork" in kubectl("get", "seeds").stdout


def test_it_selects_describes_and_explains(kubectl: Kubectl) -> None:
    named = kubectl("get", "shoots", "-A", "-o", "name", "--chunk-size", "3").stdout.split()
    assert len(named) == len(set(named)) > 3
    assert "Kind:         Shoot" in kubectl("describe", "shoot", "apollo").stdout
    assert "Domain" in kubectl("explain", "shoot.spec.dns").stdout
    missing = kubectl("get", "shoot", "nosuch")
    assert missing.returncode == 1
    assert 'shoots.core.gardener.cloud "nosuch" not found' in missing.stderr


def test_it_creates_changes_watches_and_deletes(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "one", "--from-literal=a=b").returncode == 0
    again = kubectl("create", "configmap", "one", "--from-literal=a=b")
    assert "already exists" in again.stderr
    assert kubectl("patch", "cm", "one", "-p", '{"data":{"c":"d"}}').returncode == 0
    failed = kubectl("patch", "cm", "one", "--type=json", "-p", '[{"op":"test","path":"/data/a","value":"x"}]')
    assert failed.stderr == "The request is invalid: operation 0 (test): /data/a is 'b', not 'x'\n"
    data = kubectl("get", "cm", "one", "-o", "jsonpath={.data}").stdout
    assert json.loads(data) == {"a": "b", "c": "d"}
    assert kubectl("delete", "cm", "one").returncode == 0
    assert kubectl("wait", "cm/one", "--for=delete", "--timeout=60s").returncode == 0


def test_a_list_is_applied_and_its_objects_are_validated(kubectl: Kubectl) -> None:
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-{each}"}} for each in ("one", "two")]
    listed: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": maps}
    applied = kubectl("apply", "-f", "-", given=listed)
    assert applied.stdout.split()[::2] == ["configmap/of-one", "configmap/of-two"], applied.stderr
    assert kubectl("apply", "--server-side", "-f", "-", given=listed).returncode == 0
    maps[0]["date"] = {}
    assert "date" in kubectl("apply", "-f", "-", given=listed).stderr
    assert kubectl("delete", "configmap", "of-one", "of-two").returncode == 0


@pytest.mark.parametrize("policy", ["foreground", "orphan"])
def test_a_deletion_that_awaits_or_leaves_dependents_says_why_it_is_none(kubectl: Kubectl, policy: str) -> None:
    failed = kubectl("delete", "configmap", "any", f"--cascade={policy}")
    assert f"propagationPolicy: {policy.capitalize()} is not supported" in failed.stderr


CREATIONS = (
    "quota q --hard=cpu=1,pods=2 --scopes=BestEffort",
    "role r --verb=get --verb=list --resource=configmaps,shoots.core.gardener.cloud --resource-name=one",
    "rolebinding rb --role=r --user=ada --group=staff --serviceaccount=garden-dev:robot",
    "clusterrole cr --verb=get --non-resource-url=/livez",
    "clusterrole whole --aggregation-rule=a=b",
    "clusterrolebinding crb --clusterrole=cr --user=ada",
    "serviceaccount robot",
    "deployment d --image=example.org/app:1 --replicas=0 --port=80",
    "job j --image=example.org/app:1 -- run once",
    "cronjob c --image=example.org/app:1 --schedule=@daily",
    "service clusterip svc --tcp=80:http",
    "service loadbalancer lb --tcp=80:8080",
    "ingress i --rule=example.org/path*=svc:80,tls=certificate --default-backend=svc:80",
    "poddisruptionbudget pdb --selector=a=b --min-available=50%",
)
"""Commands that send protobuf."""


@pytest.mark.parametrize("command", CREATIONS)
def test_what_a_command_creates_is_stored_as_it_would_be_written_down(kubectl: Kubectl, command: str) -> None:
    def created(*options: str) -> Any:
        done = kubectl("create", "-ojson", *options, *command.split())
        assert done.returncode == 0, done.stderr
        return {name: each for name, each in json.loads(done.stdout).items() if name not in ("metadata", "status")}

    written = created("--dry-run=client")  # as JSON, by kubectl alone
    assert _without_zeros(created()) == _without_zeros(written)


def _without_zeros(value: Any) -> Any:
    """A value without what protobuf states and JSON leaves out, or the other way round."""
    if isinstance(value, list):
        return [_without_zeros(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    entries = {name: _without_zeros(each) for name, each in cast("dict[str, Any]", value).items()}
    return {name: each for name, each in entries.items() if each not in ({}, "", None, False)}


def test_what_there_is_not_is_not_found(kubectl: Kubectl) -> None:
    failed = kubectl("create", "priorityclass", "p", "--value=1")
    assert (failed.returncode, failed.stderr) == (
        1,
        "error: failed to create priorityclass: the server could not find the requested resource\n",
    )
    assert 'no matches for kind "Pod"' in kubectl("run", "p", "--image=example.org/app:1").stderr
    assert 'the server doesn\'t have a resource type "pods"' in kubectl("get", "pods").stderr


def test_a_shoot_is_applied_placed_and_deleted_on_confirmation(kubectl: Kubectl) -> None:
    apollo = json.loads(kubectl("get", "shoot", "apollo", "-o", "json").stdout)
    spec = {name: value for name, value in apollo["spec"].items() if name not in ("seedName", "dns")}
    given = {
        **{name: apollo[name] for name in ("apiVersion", "kind")},
        "metadata": {"name": "hermione", "namespace": "garden-dev"},
        "spec": spec,
    }
    assert "created" in kubectl("apply", "-f", "-", given=given).stdout
    placed = kubectl("wait", "shoot/hermione", "--for=jsonpath={.spec.seedName}", "--timeout=60s")
    assert placed.returncode == 0, placed.stderr
    assert "unchanged" in kubectl("apply", "-f", "-", given=given).stdout
    assert "confirmation.gardener.cloud/deletion" in kubectl("delete", "shoot", "hermione").stderr
    kubectl("annotate", "shoot", "hermione", "confirmation.gardener.cloud/deletion=true")
    assert kubectl("delete", "shoot", "hermione", "--timeout=90s").returncode == 0


def test_a_misspelt_field_is_rejected(kubectl: Kubectl) -> None:
    given = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ExposureClass",
        "metadata": {"name": "a"},
        "handlr": "b",
    }
    assert "handlr" in kubectl("create", "-f", "-", "--validate=strict", given=given).stderr


def test_nobody_gets_in_without_credentials(kubectl: Kubectl) -> None:
    stranger = kubectl("get", "shoots", "--token", "nobody")
    assert stranger.returncode == 1
    assert "Unauthorized" in stranger.stderr or "must be logged in" in stranger.stderr
