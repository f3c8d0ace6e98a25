"""Token requestor: fills Secrets of the seed with tokens of ServiceAccounts of the shoot in whose namespace they are.

Source: Gardener's `pkg/controller/tokenrequestor/reconciler.go`.
"""

import base64
import random
from urllib.parse import quote

import structlog

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import AlreadyExists, BadRequest, NotFound
from gardenbus.common.ports.clock import Clock, parse_timestamp, timestamp
from gardenbus.gardenlet.domain.managed_resources.names import SHOOT_CLASS
from gardenbus.gardenlet.domain.managed_resources.tokens import (
    AUDIENCE,
    RENEWED_AT,
    AccountTokenRequest,
    is_token_secret,
    renewal_after,
    renewal_delay,
    token_request_of,
    wants_ca_bundle,
    with_token,
    without_token,
)
from gardenbus.gardenlet.resource_manager.clusters import NoTarget, ResourceClusters
from gardenbus.gardenlet.resource_manager.source import FullName, SourceCluster, version_of
from gardenbus.gardenlet.resource_manager.target import FIELD_MANAGER

_log = structlog.stdlib.get_logger()

WITHOUT_TARGET_SECONDS = 60.0
_CA_BUNDLE = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt"


class TokenRequestor:
    """See the module."""

    def __init__(self, source: SourceCluster, clusters: ResourceClusters, clock: Clock) -> None:
        self._source = source
        self._clusters = clusters
        self._clock = clock

    async def reconcile(self, name: FullName) -> float | None:
        """Request a token where it is due; returns the seconds until it is to be renewed. Raises GardenbusError."""
        cached = self._source.secrets.get(name)
        if cached is None or not is_token_secret(cached):
            return None
        source = await self._source.client()
        path = _secret_path(*name)
        secret = await source.get(path)
        if secret is None or not is_token_secret(secret):
            return None
        try:
            request = token_request_of(secret)
        except BadRequest as error:
            _log.warning("token.not_requested", secret="/".join(name), reason=error.message)
            return None
        try:
            target = await (await self._clusters.of(SHOOT_CLASS, name[0])).client()
        except NoTarget as error:
            _log.debug("token.waits", secret="/".join(name), reason=error.message)
            return WITHOUT_TARGET_SECONDS
        holder = secret if request.target is None else await target.get(_secret_path(*request.target))
        delay = renewal_delay(secret, holder, self._clock.now())
        if delay is not None and not await self._is_rejected(target, holder or {}):
            return delay.total_seconds()
        return await self._renew(source, target, secret, request)

    async def _renew(
        self, source: KubernetesClient, target: KubernetesClient, secret: Document, request: AccountTokenRequest
    ) -> float:
        await _ensure_account(target, request)
        body: Document = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [AUDIENCE], "expirationSeconds": int(request.life.total_seconds())},
        }
        account = f"/api/v1/namespaces/{quote(request.namespace)}/serviceaccounts/{quote(request.account)}"
        made = section(await target.create(f"{account}/token", body, manager=FIELD_MANAGER), "status")
        now = self._clock.now()
        expires_at = parse_timestamp(made.get("expirationTimestamp")) or now + request.life
        after = renewal_after(expires_at, now, random.random())
        bundle = await _ca_bundle(target) if wants_ca_bundle(secret) else None
        metadata = section(secret, "metadata")
        patch: Document = {
            # the component that has made the Secret may change its kubeconfig at the same time
            "metadata": {"resourceVersion": version_of(secret), "annotations": {RENEWED_AT: timestamp(now + after)}}
        }
        token = str(made.get("token") or "")
        if request.target is None:
            patch["data"] = with_token(secret, token, bundle)
        else:
            await _fill(target, request.target, token, bundle)
            patch["data"] = without_token()
        name = (str(metadata.get("namespace")), str(metadata.get("name")))
        await source.merge_patch(_secret_path(*name), patch, manager=FIELD_MANAGER)
        _log.info("token.renewed", secret="/".join(name), again_in=round(after.total_seconds()))
        return after.total_seconds()

    async def _is_rejected(self, target: KubernetesClient, holder: Document) -> bool:
        """True if the shoot does not accept the token that is there: its keys were rotated."""
        encoded = section(holder, "data").get("token")
        if not isinstance(encoded, str):
            return False
        body: Document = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": base64.b64decode(encoded).decode(errors="replace"), "audiences": [AUDIENCE]},
        }
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        made = await target.create(path, body, manager=FIELD_MANAGER)
        return not section(made, "status").get("authenticated")


async def _ensure_account(target: KubernetesClient, request: AccountTokenRequest) -> None:
    """Have the ServiceAccount be there, whose token no pod gets by itself."""
    accounts = f"/api/v1/namespaces/{quote(request.namespace)}/serviceaccounts"
    metadata: Document = {"name": request.account, "namespace": request.namespace}
    content: Document = {"automountServiceAccountToken": False}
    if request.labels:
        metadata["labels"] = dict(request.labels)
    live = await target.get(f"{accounts}/{quote(request.account)}")
    if live is None:
        manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, **content}
        try:
            await target.create(accounts, manifest, manager=FIELD_MANAGER)
        except AlreadyExists:
            live = {}
        else:
            return
    labels = section(live, "metadata", "labels")
    if live.get("automountServiceAccountToken") is False and request.labels.items() <= labels.items():
        return
    patch: Document = {"metadata": {"labels": dict(request.labels)}, **content}
    await target.merge_patch(f"{accounts}/{quote(request.account)}", patch, manager=FIELD_MANAGER)


async def _fill(target: KubernetesClient, name: FullName, token: str, bundle: bytes | None) -> None:
    """Put a token into a Secret of the shoot, which is created if need be."""
    path = _secret_path(*name)
    live = await target.get(path)
    data = with_token(live or {}, token, bundle)
    if live is not None:
        try:
            await target.merge_patch(path, {"data": data}, manager=FIELD_MANAGER)
        except NotFound:
            pass
        else:
            return
    metadata = {"name": name[1], "namespace": name[0]}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
    await target.create(path.rpartition("/")[0], manifest, manager=FIELD_MANAGER)


async def _ca_bundle(target: KubernetesClient) -> bytes | None:
    """The certificate authority of the shoot, as its controller manager publishes it."""
    found = await target.get(_CA_BUNDLE)
    text = section(found or {}, "data").get("ca.crt")
    return text.encode() if isinstance(text, str) else None


def _secret_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}"
