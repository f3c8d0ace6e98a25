"""The member agent's backend `kubernetes` on a real API server."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from gardenbus.common.api.configuration.member_agent import MemberBackendSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import ApplyStrategy
from gardenbus.common.api.fleet.overrides import OverrideSnapshot
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.processes.child import running_below
from gardenbus.memberagent.backend.installed import new_backend
from gardenbus.memberagent.backend.port import ApplyResult, BackendContext, ClusterBackend
from gardenbus.placement.domain.overrides import TargetCluster
from gardenbus.placement.domain.works import works_of
from tests.support.builders import merged
from tests.support.eventually import eventually
from tests.support.kube_availability import TRACKED, stopped, write_status
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.overrides import an_ro, for_clusters, snapshot, to

WITHIN = 30.0
ENVELOPE = "placement.kubernetes-fleet.io/v1beta1"


class Agent:
    """A backend, and the Works that it wants to have reconciled."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.changed: list[str] = []
        self.times_reached = 0
        self.backend: ClusterBackend = new_backend(
            BackendContext(
                "lisbon",
                directory,
                MemberBackendSettings(type="kubernetes", timeout_seconds=2),
                SystemClock(),
                changed=self.changed.append,
                reached=self._reached,
            )
        )

    def _reached(self) -> None:
        self.times_reached += 1

    def write(self, kubeconfig: str) -> None:
        self.directory.mkdir(exist_ok=True)
        (self.directory / "kubeconfig").write_text(kubeconfig)

    async def until_problem(self, *words: str) -> str:
        async def found() -> str:
            problem = self.backend.facts().problem or ""
            assert all(word in problem for word in words), problem
            return problem

        return await eventually(found, every=0.05)

    async def until_well(self) -> None:
        async def well() -> None:
            assert self.backend.facts().problem is None, self.backend.facts().problem

        await eventually(well, every=0.05)

    async def until_changed(self, work: str) -> None:
        async def seen() -> None:
            assert work in self.changed

        await eventually(seen, every=0.05)

    async def settled(self) -> None:
        """Wait until the events of what was done so far have come in."""
        count = -1
        while count != len(self.changed):
            count = len(self.changed)
            await asyncio.sleep(0.5)
        self.changed.clear()


@asynccontextmanager
async def an_agent(directory: Path, kubeconfig: str) -> AsyncGenerator[Agent]:
    agent = Agent(directory)
    agent.write(kubeconfig)
    await agent.backend.start()
    running = asyncio.create_task(agent.backend.run())
    try:
        yield agent
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await agent.backend.stop()


def an_object(api_version: str, kind: str, name: str, namespace: str = "shop", **content: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return merged({"apiVersion": api_version, "kind": kind, "metadata": metadata}, content)


NAMESPACE = an_object("v1", "Namespace", "shop", "")
MOTD = an_object("v1", "ConfigMap", "motd", data={"text": "welcome"})
SERVICE = an_object("v1", "Service", "web", spec={"ports": [{"port": 80}], "selector": {"app": "web"}})
WEB = an_object(
    "apps/v1",
    "Deployment",
    "web",
    spec={
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.example.org/web:1"}]},
        },
    },
)
TIDES = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "tides.example.org",
    "",
    spec={
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Tide", "plural": "tides", "singular": "tide"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"metres": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
)
TIDE = an_object("example.org/v1", "Tide", "high", spec={"metres": 4})
ALL = [TIDE, WEB, SERVICE, MOTD, TIDES, NAMESPACE]
"""In the worst order."""

MOTD_PATH = "/api/v1/namespaces/shop/configmaps/motd"


def problems(applied: ApplyResult) -> dict[str, tuple[str, str]]:
    """Reason and message of what is not applied, by name."""
    found = [each for each in applied.outcomes if not each.applied]
    return {str(section(each.manifest, "metadata")["name"]): (each.reason, each.message) for each in found}


def unavailable(applied: ApplyResult) -> dict[str, str]:
    found = [each for each in applied.outcomes if each.available is False]
    return {str(each.manifest["kind"]): each.message for each in found}


async def until_applied(agent: Agent, work: str, manifests: list[Document]) -> ApplyResult:
    async def applied() -> ApplyResult:
        result = await agent.backend.apply(work, manifests)
        assert problems(result) == {}
        assert unavailable(result) == {}
        return result

    return await eventually(applied, every=0.2)


async def edit(cluster: RealCluster, text: str, *, manager: str = "somebody", path: str = MOTD_PATH) -> None:
    """Change the ConfigMap as somebody else."""
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text}}
    await cluster.client.apply(path, {**changed, "metadata": {"name": path.rpartition("/")[2]}}, manager=manager)


async def test_a_work_lives_on_a_real_cluster(tmp_path: Path, binaries: str) -> None:
    async with real_clusters(tmp_path, binaries, ["lisbon"]) as (cluster,):
        async with an_agent(tmp_path / "agent", cluster.kubeconfig) as agent:
            await agent.until_well()
            await until_applied(agent, "shop", ALL)
            facts = agent.backend.facts()
            assert facts.properties == {"kubernetes-fleet.io/node-count": "0", "k8s.io/k8s-version": "v1.34.4"}
            assert facts.usage["available"] == {"cpu": "0", "memory": "0Ki"}
            await drifts_are_corrected(agent, cluster)
            await conflicts_are_reported(agent, cluster)
            await what_was_there_before_is_taken_over_or_not(agent, cluster)
            await what_cannot_be_applied_is_named(agent)
            await an_envelope_is_applied_as_what_is_in_it(agent, cluster)
            await availability_is_what_controllers_report(agent, cluster, tmp_path)
        # A second life finds what the first one has made, and takes it away.
        async with an_agent(tmp_path / "agent", cluster.kubeconfig) as agent:
            await agent.until_well()
            assert agent.backend.works() == {"shop"}
            await all_is_removed(agent, cluster)


async def test_abandoned_objects_stay_without_marks_until_a_work_takes_them_over(tmp_path: Path, binaries: str) -> None:
    async with (
        real_clusters(tmp_path, binaries, ["lisbon"]) as (cluster,),
        an_agent(tmp_path / "agent", cluster.kubeconfig) as agent,
    ):
        await agent.until_well()
        await until_applied(agent, "shop", ALL)
        before = await cluster.get(MOTD_PATH)
        assert await agent.backend.abandon("shop") is None
        assert agent.backend.works() == set()
        after = await cluster.get(MOTD_PATH)
        assert (after["data"], after["metadata"]["uid"]) == (before["data"], before["metadata"]["uid"])
        for mark in ("ownerReferences", "labels", "annotations"):
            assert not after["metadata"].get(mark), mark
        await edit(cluster, "theirs")
        await agent.settled()
        assert (await cluster.get(MOTD_PATH))["data"] == {"text": "theirs"}
        assert await agent.backend.abandon("shop") is None
        await until_applied(agent, "again", ALL)
        assert (await cluster.get(MOTD_PATH))["data"] == before["data"]


async def drifts_are_corrected(agent: Agent, cluster: RealCluster) -> None:
    await agent.settled()
    await agent.backend.apply("shop", ALL)
    await agent.settled()
    version = (await cluster.get(MOTD_PATH))["metadata"]["resourceVersion"]
    await agent.backend.apply("shop", ALL)
    assert (await cluster.get(MOTD_PATH))["metadata"]["resourceVersion"] == version

    await edit(cluster, "drifted")
    await agent.until_changed("shop")
    careful = ApplyStrategy(when_to_apply="IfNotDrifted")
    (drifted,) = [each for each in (await agent.backend.apply("shop", ALL, careful)).outcomes if not each.applied]
    assert drifted.reason == "FoundDrifts"
    assert [each.detail() for each in drifted.drifts] == [
        {"path": "/data/text", "valueInMember": "drifted", "valueInHub": "welcome"}
    ]
    (compared,) = [each for each in (await agent.backend.compare("shop", ALL)).outcomes if each.differs]
    assert [each.path for each in compared.diffs] == ["/data/text"]
    await until_applied(agent, "shop", ALL)
    assert (await cluster.get(MOTD_PATH))["data"] == {"text": "welcome"}

    agent.changed.clear()
    await cluster.client.delete(MOTD_PATH)
    await agent.until_changed("shop")
    await until_applied(agent, "shop", ALL)


async def conflicts_are_reported(agent: Agent, cluster: RealCluster) -> None:
    await edit(cluster, "mine", manager="kubectl-edit")
    polite = ApplyStrategy(type="ServerSideApply")
    applied = await agent.backend.apply("shop", ALL, polite)
    assert problems(applied) == {"motd": ("FailedToApply", "fields belong to others: kubectl-edit manages .data.text")}
    assert problems(await agent.backend.apply("shop", ALL, polite._replace(force=True))) == {}
    (other,) = (await agent.backend.apply("other", [MOTD])).outcomes
    assert (other.reason, other.message) == ("FailedToTakeOver", "it belongs to the Work shop already")
    assert await agent.backend.remove("other") is None
    assert (await cluster.get(MOTD_PATH))["data"] == {"text": "welcome"}


async def what_was_there_before_is_taken_over_or_not(agent: Agent, cluster: RealCluster) -> None:
    path = "/api/v1/namespaces/shop/configmaps/before"
    await edit(cluster, "old", path=path)
    before = an_object("v1", "ConfigMap", "before", data={"text": "new"})
    never = await agent.backend.apply("shop", [*ALL, before], ApplyStrategy(when_to_take_over="Never"))
    assert problems(never)["before"][0] == "NotTakenOver"
    no_diff = await agent.backend.apply("shop", [*ALL, before], ApplyStrategy(when_to_take_over="IfNoDiff"))
    (differing,) = [each for each in no_diff.outcomes if not each.applied]
    assert differing.reason == "FailedToTakeOver"
    assert [each.path for each in differing.diffs] == ["/data/text"]
    assert (await cluster.get(path))["data"] == {"text": "old"}
    await until_applied(agent, "shop", [*ALL, before])
    assert (await cluster.get(path))["data"] == {"text": "new"}
    await until_applied(agent, "shop", ALL)
    assert await cluster.client.get(path) is None


async def what_cannot_be_applied_is_named(agent: Agent) -> None:
    bad = [
        an_object("example.org/v2", "Tide", "v2"),
        an_object("none.example.org/v1", "Nothing", "nothing"),
        an_object("v1", "ConfigMap", "lost", "nowhere"),
        an_object("v1", "Service", "broken", spec={"ports": [{"port": 99999}]}),
        an_object("example.org/v1", "Tide", "typo", spec={"meters": 4}),
    ]
    found = problems(await agent.backend.apply("shop", [*ALL, *bad]))
    assert set(found) == {"v2", "nothing", "lost", "broken", "typo"}
    assert found["nothing"][0] == found["v2"][0] == "NoSuchKind"
    assert "its definition is missing" in found["nothing"][1]
    assert 'namespaces "nowhere" not found' in found["lost"][1]
    assert "spec.ports[0].port" in found["broken"][1]
    assert ".spec.meters" in found["typo"][1]


async def an_envelope_is_applied_as_what_is_in_it(agent: Agent, cluster: RealCluster) -> None:
    """The Works are those that the placement service makes, with an override of the envelope."""
    few = an_object("v1", "ResourceQuota", "few", spec={"hard": {"pods": "20"}})
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    reader = an_object("rbac.authorization.k8s.io/v1", "Role", "reader", rules=rules)
    envelope = an_object(ENVELOPE, "ResourceEnvelope", "limits", data={"quota": few, "role": reader})
    fewer = for_clusters(to("/data/quota/spec/hard/pods", "5"))
    named = {"group": ENVELOPE.partition("/")[0], "version": "v1beta1", "kind": "ResourceEnvelope", "name": "limits"}
    override = snapshot(an_ro(fewer, namespace="shop", selectors=[named]))
    work, manifests = the_work_of(envelope, override)
    await until_applied(agent, work, manifests)
    quota = "/api/v1/namespaces/shop/resourcequotas/few"
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/reader"
    assert (await cluster.get(quota))["spec"] == {"hard": {"pods": "5"}}
    assert (await cluster.get(role))["rules"] == rules

    broken = merged(envelope, {"data": {"quota": {"spec": {"hard": {"pods": "many"}}}}})
    found = problems(await agent.backend.apply(*the_work_of(broken)))
    assert set(found) == {"few"}
    assert "quantities must match" in found["few"][1]
    await until_applied(agent, *the_work_of({**envelope, "data": {"role": reader}}))
    assert await cluster.client.get(quota) is None

    async def gone() -> None:
        assert await agent.backend.remove(work) is None

    await eventually(gone, every=0.2)
    assert await cluster.client.get(role) is None


def the_work_of(envelope: Document, *overrides: OverrideSnapshot) -> tuple[str, list[Document]]:
    """Name and manifests of the Work that an envelope becomes."""
    metadata = {"name": "web-lisbon", "uid": "u", "labels": {"kubernetes-fleet.io/parent-CRP": "web"}}
    binding = {"apiVersion": ENVELOPE, "kind": "ClusterResourceBinding", "metadata": metadata}
    part = {"metadata": {"name": "web-0-snapshot"}, "spec": {"selectedResources": [envelope]}}
    spec = {"targetCluster": "lisbon", "resourceSnapshotName": "web-0-snapshot"}
    (work,) = works_of({**binding, "spec": spec}, [part], overrides, TargetCluster("lisbon", {}))
    return work["metadata"]["name"], work["spec"]["workload"]["manifests"]


async def availability_is_what_controllers_report(agent: Agent, cluster: RealCluster, directory: Path) -> None:
    """Each change of a status is noticed, and says for what an object waits."""
    manifests = [each.manifest for each in TRACKED]
    named = {str(each.manifest["kind"]): each for each in TRACKED}
    with stopped(directory, "lisbon", "kube-controller-manager"):
        applied = await agent.backend.apply("tracked", manifests)
        assert problems(applied) == {}
        assert unavailable(applied) == {kind: each.waits_for for kind, each in named.items()}
        for step in range(max(len(each.statuses) for each in TRACKED)):
            await agent.settled()
            due = [each for each in TRACKED if step < len(each.statuses)]
            await asyncio.gather(*(write_status(cluster, each.path, each.statuses[step][0]) for each in due))
            await agent.until_changed("tracked")
            expected = {kind: each.statuses[min(step, len(each.statuses) - 1)][1] for kind, each in named.items()}
            found = unavailable(await agent.backend.apply("tracked", manifests))
            assert found == {kind: message for kind, message in expected.items() if message}

    async def gone() -> None:
        assert await agent.backend.remove("tracked") is None

    await eventually(gone, every=0.2)


async def all_is_removed(agent: Agent, cluster: RealCluster) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd", "finalizers": ["example.org/hold"]}}
    await cluster.client.apply(MOTD_PATH, held, manager="holder")

    async def stuck() -> None:
        problem = await agent.backend.remove("shop")
        assert problem is not None
        assert problem.startswith("ConfigMap shop/motd: it is being deleted since")
        assert problem.endswith("held by example.org/hold")

    await eventually(stuck, every=0.2)
    assert await cluster.client.get("/api/v1/namespaces/shop/services/web") is None
    assert await cluster.client.get("/api/v1/namespaces/shop") is not None
    await cluster.client.request(
        "PATCH",
        MOTD_PATH,
        body={"metadata": {"finalizers": None}},
        content_type="application/merge-patch+json",
    )

    async def gone() -> None:
        assert await agent.backend.remove("shop") is None

    await eventually(gone, every=0.2)
    assert agent.backend.works() == set()
    assert await cluster.client.get("/api/v1/namespaces/shop") is None
    assert await cluster.client.items("/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks") == []


async def test_a_kubeconfig_that_is_wrong_is_named_and_a_right_one_taken_up(tmp_path: Path, binaries: str) -> None:
    async with real_clusters(tmp_path, binaries, ["lisbon", "porto"]) as (lisbon, porto):
        there = yaml.safe_load(porto.kubeconfig)
        there["clusters"][0]["cluster"]["server"] = lisbon.client.url
        async with an_agent(tmp_path / "agent", yaml.safe_dump(there)) as agent:
            await agent.until_problem("UntrustedServer: ", lisbon.client.url)
            theirs = yaml.safe_load(lisbon.kubeconfig)
            theirs["users"] = yaml.safe_load(porto.kubeconfig)["users"]
            theirs["contexts"] = [
                {**each, "context": {**each["context"], "user": theirs["users"][0]["name"]}}
                for each in theirs["contexts"]
            ]
            agent.write(yaml.safe_dump(theirs))
            await agent.until_problem("Unauthorized: ", "401")
            agent.write("clusters: []")
            await agent.until_problem("KubeconfigInvalid: ", "current-context: is missing")
            agent.write(await lisbon.another_kubeconfig(timedelta(seconds=1)))
            await agent.until_problem("Unauthorized: ", "the client certificate expired at")
            agent.write(await of_a_user_without_rights(lisbon))
            await agent.until_problem("Forbidden: ", "is forbidden", "system:serviceaccount:default:nobody")
            agent.write(lisbon.kubeconfig)
            await agent.until_well()
            await a_server_that_hangs_is_away_until_it_goes_on(agent, tmp_path)


async def of_a_user_without_rights(cluster: RealCluster) -> str:
    """A kubeconfig with the token of a new ServiceAccount."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    await cluster.client.apply(f"{accounts}/nobody", account, manager="test")
    requested = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    response = await cluster.client.request("POST", f"{accounts}/nobody/token", body=requested)
    kubeconfig = yaml.safe_load(cluster.kubeconfig)
    for each in kubeconfig["users"]:
        each["user"] = {"token": response["status"]["token"]}
    return yaml.safe_dump(kubeconfig)


async def a_server_that_hangs_is_away_until_it_goes_on(agent: Agent, directory: Path) -> None:
    await until_applied(agent, "shop", [NAMESPACE, MOTD])
    (server,) = [
        running.child
        for running in running_below(next(directory.glob("seed/control-planes/*lisbon*")))
        if any(argument.endswith("kube-apiserver") for argument in running.arguments[:2])
    ]
    server.signal(signal.SIGSTOP)
    await agent.until_problem("ClusterUnreachable: ")
    times = agent.times_reached
    server.signal(signal.SIGCONT)
    await agent.until_well()
    assert agent.times_reached == times + 1
    await until_applied(agent, "shop", [NAMESPACE, MOTD])
