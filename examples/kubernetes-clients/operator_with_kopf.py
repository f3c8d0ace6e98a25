"""An operator on Shoots with kopf: each Shoot gets a ConfigMap of notes, which goes with it.

pip install kopf kubernetes
gardenbus kubeconfig --landscape --file landscape.yaml
KUBECONFIG=landscape.yaml kopf run --namespace garden-dev operator_with_kopf.py
"""

# pyright: basic, reportMissingImports=false

import kopf
from kubernetes import client, config

SHOOTS = ("core.gardener.cloud", "v1beta1", "shoots")
NOTED = {"noted": "yes"}


@kopf.on.startup()
def log_in(settings: kopf.OperatorSettings, **_: object) -> None:
    config.load_kube_config()
    settings.persistence.finalizer = "notes.example.org/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="notes.example.org")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="notes.example.org")


@kopf.on.create(*SHOOTS, labels=NOTED)
def create_notes(name: str, namespace: str, spec: kopf.Spec, body: kopf.Body, **_: object) -> None:
    notes = client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=f"notes-{name}"), data={"region": spec["region"], "purpose": spec["purpose"]}
    )
    client.CoreV1Api().create_namespaced_config_map(namespace, notes)
    kopf.info(body, reason="Noted", message=f"notes of {name} were written")


@kopf.on.update(*SHOOTS, labels=NOTED, field="spec.purpose")
def update_notes(name: str, namespace: str, new: str, **_: object) -> None:
    client.CoreV1Api().patch_namespaced_config_map(f"notes-{name}", namespace, {"data": {"purpose": new}})


@kopf.on.delete(*SHOOTS, labels=NOTED)
def delete_notes(name: str, namespace: str, **_: object) -> None:
    client.CoreV1Api().delete_namespaced_config_map(f"notes-{name}", namespace)
