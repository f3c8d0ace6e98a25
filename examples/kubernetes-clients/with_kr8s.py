"""A Shoot with the Python client `kr8s`: created, waited for, changed, and deleted.

pip install kr8s
gardenbus kubeconfig --landscape --file landscape.yaml
KUBECONFIG=landscape.yaml python with_kr8s.py shoot.json
"""

# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path

import kr8s
from kr8s.objects import ConfigMap, new_class

GARDENER = "core.gardener.cloud/v1beta1"
Shoot = new_class("Shoot", GARDENER, namespaced=True)
Seed = new_class("Seed", GARDENER, namespaced=False)
CONFIRMATION = "confirmation.gardener.cloud/deletion"


def main(file: Path) -> None:
    print("version:", kr8s.version()["gitVersion"])
    print("seeds:", *sorted(seed.name for seed in Seed.list()))

    manifest = json.loads(file.read_text())
    namespace = manifest["metadata"]["namespace"]
    shoot = Shoot(manifest)
    shoot.create()
    for _, each in kr8s.watch(Shoot, namespace=namespace, field_selector={"metadata.name": shoot.name}):
        if each.spec.get("seedName"):
            print("placed on:", each.spec.seedName)
            break

    shoot.label(team="orbit")
    shoot.annotate({"note": "by kr8s"})
    print("of the team:", *(each.name for each in Shoot.list(namespace=namespace, label_selector={"team": "orbit"})))
    shoot.patch([{"op": "replace", "path": "/metadata/labels/team", "value": "apollo"}], type="json")
    shoot.refresh()
    print("labels:", shoot.labels["team"])

    notes = ConfigMap({"metadata": {"name": "notes", "namespace": namespace}, "data": {"a": "1"}})
    notes.create()
    print("notes:", notes.exists(), dict(ConfigMap.get("notes", namespace=namespace).data))
    notes.delete()

    shoot.annotate({CONFIRMATION: "true"})
    shoot.delete()
    shoot.wait("delete", timeout=120)
    print("gone:", shoot.name, not shoot.exists())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
