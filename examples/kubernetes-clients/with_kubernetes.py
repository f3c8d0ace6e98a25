"""A Shoot with the Python client `kubernetes`: created, watched until it has a seed, changed, and deleted.

pip install kubernetes
gardenbus kubeconfig --landscape --file landscape.yaml
KUBECONFIG=landscape.yaml python with_kubernetes.py shoot.json
"""

# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path

from kubernetes import client, config, watch

GARDENER = ("core.gardener.cloud", "v1beta1")
CONFIRMATION = "confirmation.gardener.cloud/deletion"


def main(file: Path) -> None:
    config.load_kube_config()
    objects, core = client.CustomObjectsApi(), client.CoreV1Api()
    seeds = objects.list_cluster_custom_object(*GARDENER, "seeds")
    print("seeds:", *(seed["metadata"]["name"] for seed in seeds["items"]))

    shoot = json.loads(file.read_text())
    namespace, name = shoot["metadata"]["namespace"], shoot["metadata"]["name"]
    shoots = (*GARDENER, namespace, "shoots")
    created = objects.create_namespaced_custom_object(*shoots, shoot)
    try:
        objects.create_namespaced_custom_object(*shoots, shoot)
    except client.ApiException as error:
        print("created again:", error.status, json.loads(error.body)["reason"])

    since = {"resource_version": created["metadata"]["resourceVersion"], "timeout_seconds": 120}
    events = watch.Watch()
    for event in events.stream(objects.list_namespaced_custom_object, *shoots, **since):
        found = event["object"]
        if found["metadata"]["name"] == name and found["spec"].get("seedName"):
            print("placed on:", found["spec"]["seedName"])
            events.stop()

    labels = {"metadata": {"labels": {"team": "orbit"}}}
    objects.patch_namespaced_custom_object(*shoots, name, labels)
    selected = objects.list_namespaced_custom_object(*shoots, label_selector="team=orbit")
    print("of the team:", *(each["metadata"]["name"] for each in selected["items"]))

    notes = client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="notes-"), data={"shoot": name})
    stored = core.create_namespaced_config_map(namespace, notes)
    stored.data["by"] = "kubernetes"
    core.replace_namespaced_config_map(stored.metadata.name, namespace, stored)
    print("notes:", core.read_namespaced_config_map(stored.metadata.name, namespace).data)
    core.delete_namespaced_config_map(stored.metadata.name, namespace)

    try:
        objects.delete_namespaced_custom_object(*shoots, name)
    except client.ApiException as error:
        print("deleted unconfirmed:", error.status, json.loads(error.body)["reason"])
    objects.patch_namespaced_custom_object(*shoots, name, {"metadata": {"annotations": {CONFIRMATION: "true"}}})
    objects.delete_namespaced_custom_object(*shoots, name)
    gone = watch.Watch()
    for event in gone.stream(objects.list_namespaced_custom_object, *shoots, timeout_seconds=120):
        if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
            print("gone:", name)
            gone.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
