#!/bin/sh
# Renews the heartbeats of all installations of a ControllerRegistration: what its controller does every 30 s.
# Usage: heartbeat.sh REGISTRATION [SECONDS]   (without SECONDS: once)
set -eu
while :; do
  gardenbus get controllerinstallations -o json |
    python3 -c '
import json, sys, datetime
now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
for each in json.load(sys.stdin)["items"]:
    if each["spec"]["registrationRef"]["name"] == sys.argv[1]:
        namespace = "extension-" + each["metadata"]["name"]
        spec = {"holderIdentity": sys.argv[1], "leaseDurationSeconds": 30, "renewTime": now}
        metadata = {"name": "gardener-extension-heartbeat", "namespace": namespace}
        print(json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}))
        print("---")
' "$1" | gardenbus apply -f -
  [ -n "${2:-}" ] || exit 0
  sleep "$2"
done
