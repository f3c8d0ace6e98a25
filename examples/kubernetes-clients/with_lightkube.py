"""A Shoot with the Python client `lightkube`: applied by the server, waited for, and deleted.

pip install lightkube
gardenbus kubeconfig --landscape --file landscape.yaml
KUBECONFIG=landscape.yaml python with_lightkube.py shoot.json
"""

# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path

from lightkube import ApiError, Client
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Secret
from lightkube.types import PatchType

GARDENER = ("core.gardener.cloud", "v1beta1")
Shoot = create_namespaced_resource(*GARDENER, "Shoot", "shoots")
Seed = create_global_resource(*GARDENER, "Seed", "seeds")
CONFIRMATION = "confirmation.gardener.cloud/deletion"


def main(file: Path) -> None:
    client = Client(field_manager="with-lightkube")
    print("seeds:", *(seed.metadata.name for seed in client.list(Seed)))

    manifest = json.loads(file.read_text())
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    client.apply(Shoot(manifest))
    for _, shoot in client.watch(Shoot, namespace=namespace, fields={"metadata.name": name}):
        if shoot.spec.get("seedName"):
            print("placed on:", shoot.spec["seedName"])
            break

    manifest["metadata"]["labels"] = {"team": "orbit"}
    applied = client.apply(Shoot(manifest))
    print("labels:", applied.metadata.labels["team"])

    notes = ConfigMap(metadata=ObjectMeta(name="notes", namespace=namespace), data={"a": "1", "b": "2"})
    client.create(notes)
    patched = client.patch(ConfigMap, "notes", {"data": {"b": None}}, namespace=namespace, patch_type=PatchType.MERGE)
    print("notes:", patched.data)
    secret = client.create(Secret(metadata=ObjectMeta(name="keys", namespace=namespace), stringData={"key": "value"}))
    print("keys:", secret.data)
    for kind, each in ((ConfigMap, "notes"), (Secret, "keys")):
        client.delete(kind, each, namespace=namespace)

    try:
        client.get(Shoot, "nosuch", namespace=namespace)
    except ApiError as error:
        print("missing:", error.status.reason)
    confirmed = {"metadata": {"annotations": {CONFIRMATION: "true"}}}
    client.patch(Shoot, name, confirmed, namespace=namespace, patch_type=PatchType.MERGE)
    client.delete(Shoot, name, namespace=namespace)
    for event, shoot in client.watch(Shoot, namespace=namespace, fields={"metadata.name": name}):
        if event == "DELETED":
            print("gone:", shoot.metadata.name)
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
