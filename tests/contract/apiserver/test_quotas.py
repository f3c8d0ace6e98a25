"""Quotas and ResourceQuotas, through real servers."""

import asyncio

from gardenbus.common.api.configuration.admission import parse_configuration
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import CORE, a_cloudprofile, a_shoot, merged

MACHINES = {"machineTypes": [{"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}]}
QUOTA: Document = {
    "apiVersion": CORE,
    "kind": "Quota",
    "metadata": {"namespace": "garden-dev", "name": "small"},
    "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "metrics": {"cpu": "6", "loadbalancer": "10"}},
}
BINDING: Document = {
    "apiVersion": CORE,
    "kind": "SecretBinding",
    "metadata": {"namespace": "garden-dev", "name": "aws"},
    "provider": {"type": "aws"},
    "secretRef": {"name": "aws"},
    "quotas": [{"name": "small"}],
}


SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "garden-dev", "name": "aws"}}


def a_cluster(name: str, machines: int = 1) -> Document:
    pool = {"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": machines}
    return a_shoot(name, spec={"secretBindingName": "aws", "provider": {"type": "aws", "workers": [pool]}})


async def test_objects_beyond_the_size_of_the_configuration_are_refused_however_they_come(
    idle_apiserver: Apiserver,
) -> None:
    limit = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["shoots"], "size": "2Ki"}
    section = {"limits": [limit], "unrestrictedSubjects": [{"kind": "User", "name": "ann"}]}
    plugin = {"name": "ResourceSize", "configuration": {"server": {"resourceAdmissionConfiguration": section}}}
    header = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    await idle_apiserver.start(configuration=parse_configuration(encode({**header, "plugins": [plugin]})))
    large: Document = {"metadata": {"annotations": {"a": "x" * 2048}}}

    await idle_apiserver.request("apply", a_shoot("small"))
    error = await idle_apiserver.rejection("apply", merged(a_shoot("large"), large))
    assert (error["code"], error["message"].partition(" has ")[0]) == (403, "shoots 'large'")
    assert (await idle_apiserver.rejection("patch.shoot.garden-dev.small", large))["code"] == 403
    await idle_apiserver.request("apply", merged(a_shoot("large"), large), user="ann")
    await idle_apiserver.publish("apply", merged(a_shoot("larger"), large))
    assert "the maximum is 2048" in await idle_apiserver.reason()


async def test_of_many_shoots_at_once_as_many_come_about_as_the_quota_allows(apiserver: Apiserver) -> None:
    for document in (a_cloudprofile(spec=MACHINES), QUOTA, SECRET, BINDING):
        await apiserver.request("apply", document)
    await asyncio.gather(*(apiserver.response("apply", a_cluster(f"s{number}")) for number in range(12)))

    shoots = (await apiserver.kit.store.list_page("shoot")).objects
    assert len(shoots) == 3
    error = await apiserver.rejection("apply", a_cluster("another"))
    assert (error["code"], error["message"].partition(": ")[2]) == (
        403,
        "quota limits exceeded: quota garden-dev/small allows cpu 6, loadbalancer 10. Unable to allocate further cpu",
    )
    taken = shoots[0].key
    error = await apiserver.rejection("apply", merged(a_cluster(taken.name, 2), {"metadata": {"labels": {"a": "b"}}}))
    assert error["code"] == 403
    await apiserver.request("apply", merged(QUOTA, {"spec": {"metrics": {"cpu": "8"}}}))
    await apiserver.request("apply", a_cluster(taken.name, 2))
    assert (await apiserver.rejection("apply", a_cluster("another"), dry_run="true"))["code"] == 403


async def test_a_shoot_beyond_a_resource_quota_is_refused_in_the_words_of_kubernetes(apiserver: Apiserver) -> None:
    resource = "count/shoots.core.gardener.cloud"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"namespace": "garden-dev", "name": "gardener"},
        "spec": {"hard": {resource: "1"}},
    }
    assert (await apiserver.request("apply", quota))["status"] == {"hard": {resource: "1"}, "used": {resource: "0"}}
    await apiserver.publish("apply", {"apiVersion": "v1", "kind": "List", "items": [a_shoot("one"), a_shoot("two")]})
    await apiserver.until_handled()
    assert f"requested: {resource}=1, used: {resource}=1, limited: {resource}=1" in await apiserver.reason()
    error = await apiserver.rejection("apply", a_shoot("three"))
    assert error["code"] == 403
    assert error["message"].startswith('shoots.core.gardener.cloud "three" is forbidden: exceeded quota: gardener, ')
    stored = await apiserver.now(ObjectKey("resourcequota", "garden-dev", "gardener"))
    assert stored.document()["status"]["used"] == {resource: "1"}


async def test_of_two_registrations_at_once_one_is_primary(apiserver: Apiserver) -> None:
    registrations = [
        {
            "apiVersion": CORE,
            "kind": "ControllerRegistration",
            "metadata": {"name": name},
            "spec": {"resources": [{"kind": "Infrastructure", "type": "aws"}]},
        }
        for name in ("one", "two", "three")
    ]
    await asyncio.gather(*(apiserver.response("apply", each) for each in registrations))

    assert len((await apiserver.kit.store.list_page("controllerregistration")).objects) == 1
