#!/usr/bin/env python3
"""A backend in 40 lines, as a command: a shoot is a file that has its spec."""

import json
import sys
from pathlib import Path
from uuid import uuid4

AGAIN_LATER = 75


def take(given: dict, folder: Path) -> dict:
    """Each step may come twice, and half done: it makes what is missing and removes what is there."""
    step, file = given["step"], folder / f"{given['shoot']['technicalID']}.json"
    if step == "etcd":  # what is kept lasts, and moves with the shoot
        return {"kept": {"volume": given["kept"].get("etcd", {}).get("volume") or uuid4().hex}}
    if step == "control-plane":
        file.write_text(json.dumps(given["spec"]))
    if step in ("delete-etcd", "release-etcd"):
        file.unlink(missing_ok=True)
    if step == "health" and not file.exists():
        return {"problems": {"ControlPlaneHealthy": "Its file is gone."}}
    return {}


given = json.load(sys.stdin)
try:
    response = take(given, Path(given["seed"]["directory"]))
except OSError as error:
    json.dump({"message": str(error)}, sys.stdout)
    sys.exit(AGAIN_LATER)
json.dump(response, sys.stdout)
