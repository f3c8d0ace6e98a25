"""The computation of which registrations a seed needs, written a second time as its definition reads.

It walks all objects and shares nothing with what it is compared to.
"""

from typing import Any

from gardenbus.common.api.document import Document


def naive_wanted(seed: Document, objects: list[Document]) -> set[str] | None:
    """Names of the registrations that a seed needs; None if something is needed that none offers."""
    name, spec = seed["metadata"]["name"], seed["spec"]
    deleting = "deletionTimestamp" in seed["metadata"]
    registrations = [one for one in objects if one["kind"] == "ControllerRegistration"]
    shoots = [
        one
        for one in objects
        if one["kind"] == "Shoot" and name in (one["spec"].get("seedName"), one.get("status", {}).get("seedName"))
    ]
    needed: set[str] = set()
    for shoot in shoots:
        needed |= _shoot(shoot, spec, registrations, objects)
    if not deleting:
        needed |= _seed(spec, registrations)
    needed |= _backups(name, objects)
    wanted = _by_policy(registrations, deleting=deleting, has_shoots=bool(shoots))
    for one in needed:
        offering = [
            registration["metadata"]["name"]
            for registration in registrations
            if one in [f"{resource['kind']}/{resource['type']}" for resource in registration["spec"]["resources"]]
        ]
        if not offering:
            return None
        wanted |= set(offering)
    labels = seed["metadata"].get("labels", {})
    for registration in registrations:
        selector = registration["spec"].get("deployment", {}).get("seedSelector", {}).get("matchLabels", {})
        if any(labels.get(label) != value for label, value in selector.items()):
            wanted.discard(registration["metadata"]["name"])
    return wanted


def _by_policy(registrations: list[Document], *, deleting: bool, has_shoots: bool) -> set[str]:
    wanted: set[str] = set()
    for registration in registrations:
        policy = registration["spec"].get("deployment", {}).get("policy")
        is_there = "deletionTimestamp" not in registration["metadata"]
        if policy == "Always" and is_there and not deleting:
            wanted.add(registration["metadata"]["name"])
        if policy == "AlwaysExceptNoShoots" and is_there and has_shoots:
            wanted.add(registration["metadata"]["name"])
    return wanted


def _backups(name: str, objects: list[Document]) -> set[str]:
    buckets = {
        one["metadata"]["name"]: one["spec"]["provider"]["type"]
        for one in objects
        if one["kind"] == "BackupBucket" and one["spec"]["seedName"] == name
    }
    needed = {f"BackupBucket/{provider}" for provider in buckets.values()}
    for one in objects:
        if one["kind"] == "BackupEntry" and one["spec"]["seedName"] == name and one["spec"]["bucketName"] in buckets:
            needed.add(f"BackupEntry/{buckets[one['spec']['bucketName']]}")
    return needed


def _shoot(shoot: Document, seed: Document, registrations: list[Document], objects: list[Document]) -> set[str]:
    spec = shoot["spec"]
    needed = {f"ControlPlane/{seed['provider']['type']}"}
    if seed.get("backup"):
        needed |= {f"{kind}/{seed['backup']['provider']}" for kind in ("BackupBucket", "BackupEntry")}
    workers = spec["provider"].get("workers", [])
    if workers:
        own = spec["provider"]["type"]
        needed |= {f"ControlPlane/{own}", f"Infrastructure/{own}", f"Worker/{own}"}
        needed.add(f"Network/{spec['networking']['type']}")
    for worker in workers:
        if "image" in worker["machine"]:
            needed.add(f"OperatingSystemConfig/{worker['machine']['image']['name']}")
        needed |= {f"ContainerRuntime/{one['type']}" for one in worker.get("cri", {}).get("containerRuntimes", [])}
    needed |= _dns(spec.get("dns", {}), objects)
    needed |= _extensions(spec, registrations, "shoot", bool(workers))
    return needed


def _dns(dns: Document, objects: list[Document]) -> set[str]:
    providers = [one["type"] for one in dns.get("providers", []) if one.get("primary")]
    for secret in sorted(
        (one for one in objects if one["kind"] == "Secret"), key=lambda secret: secret["metadata"]["name"]
    ):
        annotations = secret["metadata"]["annotations"]
        domain, provider = annotations["dns.gardener.cloud/domain"], annotations["dns.gardener.cloud/provider"]
        if secret["metadata"]["labels"]["gardener.cloud/role"] == "internal-domain" or dns.get("domain", "").endswith(
            f".{domain}"
        ):
            providers.append(provider)
    return {f"DNSRecord/{provider}" for provider in providers if provider != "unmanaged"}


def _seed(spec: Document, registrations: list[Document]) -> set[str]:
    provider = spec["provider"]["type"]
    needed = {f"ControlPlane/{provider}", f"Infrastructure/{provider}", f"Worker/{provider}"}
    if dns := spec.get("dns", {}).get("provider"):
        needed.add(f"DNSRecord/{dns['type']}")
    return needed | _extensions(spec, registrations, "seed", True)


def _extensions(spec: Document, registrations: list[Document], cluster: str, with_workers: bool) -> set[str]:
    stated: list[Any] = spec.get("extensions", [])
    off = {one["type"] for one in stated if one.get("disabled")}
    on = {one["type"] for one in stated if not one.get("disabled")}
    for registration in registrations:
        for resource in registration["spec"]["resources"]:
            if resource["kind"] != "Extension" or resource["type"] in off:
                continue
            if not with_workers and not resource.get("workerlessSupported"):
                continue
            if cluster in resource.get("autoEnable", []) or (cluster == "shoot" and resource.get("globallyEnabled")):
                on.add(resource["type"])
    return {f"Extension/{one}" for one in on}
