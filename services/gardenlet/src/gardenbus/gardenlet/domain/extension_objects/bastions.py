"""Bastion objects of a seed, by the Bastions of the garden; and what is reported of these.

| Bastion of the garden | its object in the seed | done | reported: BastionReady |
|---|---|---|---|
| without the finalizer | any | nothing | Progressing, which brings the finalizer |
| with it | none, another spec, or one that has failed | requested | the error, if there is one |
| with it | with an error, or without a last operation | nothing | False FailedReconciling |
| with it | succeeded | nothing | True SuccessfullyReconciled, and the address |
| being deleted | there | deleted once | False DeletionInProgress |
| being deleted | gone | nothing | False Deleted, which takes the finalizer off |

Source: Gardener's `pkg/gardenlet/controller/bastion/reconciler.go`.
"""

import base64
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, PROGRESSING, TRUE, build_condition, conditions_of, get_or_init
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import (
    is_deleting,
    is_protected,
    key_of_document,
    mappings,
    name_of,
    namespace_of,
    only_text,
)
from gardenbus.common.api.garden.bastions import BASTION_DELETED, BASTION_READY
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.extension_objects.contract import last_error
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject
from gardenbus.gardenlet.domain.shoot_status import technical_id

_USER_DATA = """#!/bin/bash -eu

id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo "{key}" > /home/gardener/.ssh/authorized_keys
chown gardener:gardener /home/gardener/.ssh/authorized_keys
echo "gardener ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/99-gardener-user
systemctl start sshd || systemctl start ssh
"""
_SUCCEEDED, _FAILED, _ERROR = "Succeeded", "Failed", "Error"
_FAILED_RECONCILING = "FailedReconciling"


class ListedBastion(NamedTuple):
    """A Bastion of a list: its key, uid and version."""

    key: ObjectKey
    uid: str
    version: str


class BastionPlan(NamedTuple):
    """Steps for one Bastion: its object is requested or deleted, and this status reported."""

    status: Document
    is_requested: bool = False
    is_deleted: bool = False


def listed(bastion: Document) -> ListedBastion:
    """Key, uid and version of a Bastion."""
    metadata = section(bastion, "metadata")
    uid, version = (only_text(metadata.get(field)) for field in ("uid", "resourceVersion"))
    return ListedBastion(key_of_document(bastion), uid, version)


def bastion_object(bastion: Document) -> ExtensionObject:
    """The object in the seed of a Bastion of the garden."""
    spec = section(bastion, "spec")
    namespace = technical_id(namespace_of(bastion), only_text(section(spec, "shootRef").get("name")))
    user_data = _USER_DATA.format(key=only_text(spec.get("sshPublicKey"))).encode()
    wanted: Document = {
        "type": only_text(spec.get("providerType")),
        "userData": base64.b64encode(user_data).decode(),
        "ingress": [{"ipBlock": section(each, "ipBlock")} for each in mappings(spec.get("ingress"))],
    }
    return ExtensionObject("Bastion", namespace, name_of(bastion), wanted)


def plan_bastion(bastion: Document, live: Document | None, *, now: datetime) -> BastionPlan:
    """Decide by the table of the module."""
    if is_deleting(bastion):
        if live is None:
            return BastionPlan(_ready(bastion, FALSE, BASTION_DELETED, "Nothing is left of the bastion.", now=now))
        message = "The bastion is being deleted."
        status = _ready(bastion, FALSE, "DeletionInProgress", message, now=now)
        return BastionPlan(status, is_deleted=not is_deleting(live))
    if not is_protected(bastion):
        return BastionPlan(_ready(bastion, PROGRESSING, "Reconciling", "The bastion is being reconciled.", now=now))
    wanted = bastion_object(bastion)
    if live is None or section(live, "spec") != wanted.spec:
        return BastionPlan({}, is_requested=True)
    state = section(live, "status", "lastOperation").get("state")
    if problem := _problem(live, state):
        what = f"Error while waiting for Bastion {wanted.namespace}/{wanted.name} to become ready: {problem}"
        return BastionPlan(failed_status(bastion, what, now=now), is_requested=state == _FAILED)
    if state != _SUCCEEDED:
        return BastionPlan({})
    status = _ready(bastion, TRUE, "SuccessfullyReconciled", "The bastion has been reconciled successfully.", now=now)
    made = {
        "ingress": section(live, "status").get("ingress"),
        "observedGeneration": section(bastion, "metadata").get("generation"),
    }
    before = section(bastion, "status")
    return BastionPlan(status | {field: value for field, value in made.items() if value != before.get(field)})


def failed_status(bastion: Document, problem: str, *, now: datetime) -> Document:
    """The status of a Bastion whose host cannot be made."""
    return _ready(bastion, FALSE, _FAILED_RECONCILING, problem, now=now)


def _problem(live: Document, state: object) -> str:
    if not state:
        return "extension did not record a last operation yet"
    if (error := last_error(live)) is not None:
        return f"error during reconciliation: {error.description}"
    return f"extension state is not Succeeded but {state}" if state in (_ERROR, _FAILED) else ""


def _ready(bastion: Document, status: str, reason: str, message: str, *, now: datetime) -> Document:
    """A patch of the status with this condition; empty where it is that already."""
    old = get_or_init(conditions_of(bastion), BASTION_READY, timestamp(now))
    condition, is_changed = build_condition(old, now=timestamp(now), status=status, reason=reason, message=message)
    return {"conditions": [condition]} if is_changed else {}
