"""A landscape that gets messages which nobody should send: what is in it, and what must be as before."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.eventually import HANG_SECONDS
from tests.support.landscape import Landscape

QUEUES = ("scheduling.default-scheduler", "waking", "migration", "garbage", "managedseedset", "autoscaler", "placement")
SERVED = tuple(f"garden.queue.{queue}." for queue in QUEUES)
UNSERVED = re.compile(
    r"garden\.queue\.scheduling\.default-scheduler\.(?![^.]+\.[^.]+$|(\+1|-1)\.[^.]+\.[^.]+$)", re.DOTALL
)
"""Subjects below a scheduler's queue that name no shoot: no band has them, and no service sends them."""

AGENT: Mapping[str, Any] = {
    "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
    "kind": "MemberAgentConfiguration",
    "metadata": {"name": "one"},
    "clusters": [{"metadata": {"name": "m"}}],
}


def processes(landscape: Landscape) -> dict[str, int]:
    """The process id of each service."""
    return {service["name"]: service["pid"] for service in landscape.describe()["services"]}


async def unfinished(landscape: Landscape) -> list[str]:
    """Subjects with messages in work queues that somebody serves."""
    found: list[str] = []
    for stream in ("REQUESTS", "REPORTS", "QUEUES"):
        response = await landscape.client.request(
            f"$JS.API.STREAM.INFO.{stream}", b'{"subjects_filter": ">"}', timeout=HANG_SECONDS
        )
        subjects: dict[str, int] = json.loads(response.data)["state"].get("subjects") or {}
        found += subjects
    return [subject for subject in found if not subject.startswith(("garden.later.", "garden.queue."))] + [
        subject for subject in found if subject.startswith(SERVED) and not UNSERVED.match(subject)
    ]
