"""What is done with an input in process: the pure steps of the apiserver, and what all services read of what it takes.

A step takes the input or raises one of the library's own errors. Whatever was taken must survive: stored and read back
it is the same, and applying it again is possible.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from gardenbus.apiserver.domain import merging, migration
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.bind_admission import admit_binding, admit_migration
from gardenbus.apiserver.domain.controller_owned_kinds import reject_controller_owned
from gardenbus.apiserver.domain.field_validation import manifest_review, patch_review, validation_of
from gardenbus.apiserver.domain.operations import accept_operation
from gardenbus.apiserver.domain.query_bodies import read_body
from gardenbus.apiserver.domain.report_admission import (
    bumps_generation,
    check_object,
    check_seed_claim,
    check_shoot,
    finish_deletion,
    reported_event,
    reported_status,
    with_highest_observed_generation,
    with_operator_settings_kept,
    without_observed_operation,
)
from gardenbus.apiserver.domain.report_messages import read_report
from gardenbus.apiserver.domain.report_stamps import merge_report
from gardenbus.apiserver.domain.request_subjects import (
    key_of_tail,
    list_target_of_tail,
    parse_report_subject,
    parse_request_subject,
)
from gardenbus.apiserver.domain.responses import error_response, success_response
from gardenbus.apiserver.domain.unknown_objects import adoptable_manifest
from gardenbus.apiserver.domain.use_as_seed import requested_seed
from gardenbus.apiserver.domain.validation.manifest import validate, validate_status
from gardenbus.apiserver.domain.validation.metadata import key_of, reference_of
from gardenbus.apiserver.registry.dry_run import is_dry_run
from gardenbus.apiserver.registry.preconditions import check_identity, check_size, precondition_of, version_in
from gardenbus.common.api.changes import change_of, creation_of
from gardenbus.common.api.configuration import (
    controller_manager,
    gardenlet,
    member_agent,
    scheduler,
    seed_autoscaler,
)
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, StoredObject, encode, section, split_encoded
from gardenbus.common.api.document_parts import without
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.garden.profile_parts import profile_spec_of
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.manifests.parser import parse, read_values
from gardenbus.common.api.request_bodies import BindRequest, ListRequest, ScaleRequest
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.ports.bus import StreamMessage
from tests.fuzz.generator import Input
from tests.fuzz.readers import read_by_services
from tests.fuzz.world import World, stored_object

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SUBJECTS = Subjects()
STRICTNESS = tuple(FieldValidation)
USER = "ann"
REPORTED_KINDS = ("shoot", "seed", "managedseed", "membercluster", "work")
"""Kinds whose status agents report."""


class NotTheSame(AssertionError):
    """What was taken reads otherwise than it was taken."""


class _Queued:
    """A message of REPORTS."""

    deliveries = 1

    def __init__(self, given: Input) -> None:
        self.message = StreamMessage(given.subject, given.body, given.headers, 9, NOW)


class Targets:
    """The targets on one world."""

    def __init__(self, world: World) -> None:
        self.admission = Admission()
        self.world = world
        self._bases = list(world.objects.values())
        self._reported = [stored for stored in self._bases if stored.key.kind in REPORTED_KINDS]
        self._targets: Mapping[str, Callable[[Input], None]] = {
            "create": self.create,
            "update": self.update,
            "patch": self.patch,
            "report": self.report,
            "bind": self.bind,
            "delete": self.delete,
            "query": self.query,
            "headers": self.headers,
            "configuration": self.configuration,
        }

    def run(self, given: Input) -> str:
        """Do it; returns "taken" or the reason of the rejection, whose response can be encoded."""
        try:
            self._targets[given.target](given)
        except GardenbusError as error:
            error_response(error).encoded()
            return error.reason
        return "taken"

    # -------------------------------------------------------------------------------------- manifests

    def create(self, given: Input) -> None:
        """Apply manifests that are not there yet."""
        first: GardenbusError | None = None
        for document in parse(given.body):
            try:
                self._create(document, given)
            except GardenbusError as error:
                first = first or error
        if first is not None:
            raise first

    def _create(self, document: Document, given: Input) -> None:
        key = key_of(document)
        reject_controller_owned(key)
        review = manifest_review(document, key, STRICTNESS[given.base % 3])
        warnings = review(None)
        sent = merging.without_system_fields(document)
        last_applied = encode(sent)
        admitted = self.admitted(merging.new_object(sent, last_applied), None)
        change = creation_of(admitted)
        self._read_back(admitted, change.parts)
        read_by_services(admitted)
        success_response(admitted, warnings).encoded()
        if given.base % 16 == 0:
            self._again(admitted)

    def _again(self, admitted: Document) -> None:
        """What was admitted is admitted again, and changes nothing."""
        stored = stored_object(admitted)
        current = stored.document()
        last = msgspec.json.decode(stored.last_applied)
        merged = self.admitted(merging.apply_three_way(current, last, last), current)
        if change_of(stored, merged).spec:
            raise NotTheSame(f"applied twice, {stored.key} changes")

    def update(self, given: Input) -> None:
        """Apply a manifest over a stored object."""
        stored = self._base(given)
        current = stored.document()
        for document in parse(given.body):
            key = key_of(document)
            manifest_review(document, key, STRICTNESS[given.base % 3])(current)
            version_in(document)
            if document.get("kind") != current["kind"]:
                continue
            sent = merging.without_system_fields(document)
            last_applied = encode(sent)
            merged = merging.apply_three_way(current, msgspec.json.decode(stored.last_applied), sent)
            self._written(stored, current, merged)
            msgspec.json.decode(last_applied)

    def patch(self, given: Input) -> None:
        """Change a stored object by a JSON merge patch."""
        stored = self._base(given)
        current = stored.document()
        values = read_values(given.body)
        if len(values) != 1 or not isinstance(values[0], dict):
            raise BadRequest("a patch is one JSON object")
        patch = cast("Document", values[0])
        patch_review(patch, stored.key, STRICTNESS[given.base % 3])(current)
        kept = {name: part for name, part in patch.items() if given.base % 2 or name not in ("kind", "apiVersion")}
        patched = merging.merge_patch(current, without(kept, "status"))
        check_identity(current, patched)
        self._written(stored, current, patched)

    def _written(self, stored: StoredObject, current: Document, merged: Document) -> None:
        admitted = self.admitted(merged, current)
        document, _ = accept_operation(current, admitted)
        change = change_of(stored, document)
        self._read_back(document, change.parts)
        read_by_services(document)

    def admitted(self, document: Document, current: Document | None) -> Document:
        """The document as it would be stored: the steps of `Writer`."""
        admission = self.admission
        related = self.world.related(admission.related_queries(document, current))
        mutated = admission.mutate(document, current, related, user=USER)
        validate(mutated.document, current)
        admission.admit(mutated.document, current, related, now=NOW)
        is_shoot = mutated.document["kind"] == "Shoot"
        admitted = with_status_label(mutated.document) if is_shoot else mutated.document
        check_size(admitted)
        admission.write_guards(admitted, current, related)
        if is_shoot:
            encode(requested_seed(admitted).managed_seed)
        return admitted

    def _read_back(self, document: Document, parts: Any) -> None:
        stored = StoredObject(
            key=ObjectKey("x", "", "x"), parts=parts, uid="", version=1, generation=1, created_at="2026-01-01T00:00:00Z"
        )
        read = stored.document()
        if split_encoded(stored.encoded()) != parts and document["kind"] != "Shoot":
            raise NotTheSame("cut out of what is stored, its parts are others")
        spec = document.get("spec")
        if spec is not None and read.get("spec") != spec:
            raise NotTheSame("stored and read back, spec is another")

    # -------------------------------------------------------------------------------------- reports

    def report(self, given: Input) -> None:
        """Merge a report into a stored object."""
        stored = self._reported[given.base % len(self._reported)]
        document = stored.document()
        report = read_report(cast("Any", _Queued(given)), "aws-eu1", stored.key, 5)
        check_object(stored, uid=report.uid if given.base % 4 == 0 else "", reported_at=report.at, what="it")
        adoptable_manifest(report.body, stored.key, uid=stored.uid, seed="aws-eu1")
        if report.verb == "event":
            reported_event(report.body)
            return
        status = reported_status(report.body)
        if stored.key.kind == "shoot" and given.base % 2:
            check_shoot(document, "aws-eu1", "it")
            check_seed_claim(document, status)
        else:
            status = {name: part for name, part in status.items() if name != "seedName"}
        before = section(document, "status")
        stamped = merge_report(before, b"", report=status, incarnation=5, sequence=9)
        again = merge_report(stamped.status, stamped.stamps, report=status, incarnation=5, sequence=9)
        if again.status != stamped.status:
            raise NotTheSame("merged twice, a report changes the status again")
        validate_status({**document, "status": stamped.status}, document)
        new_status = with_highest_observed_generation(before, stamped.status)
        merged = without_observed_operation(finish_deletion({**document, "status": new_status}))
        merged = with_operator_settings_kept(document, merged)
        merged = with_status_label(merged) if merged["kind"] == "Shoot" else merged
        bumps_generation(document, merged)
        self._read_back(merged, change_of(stored, merged).parts)
        read_by_services(merged)

    # -------------------------------------------------------------------------------------- the rest

    def bind(self, given: Input) -> None:
        """Read and admit a bind, or a scale."""
        try:
            decode_json(given.body, BindRequest)
            scale = decode_json(given.body, ScaleRequest)
        except msgspec.DecodeError as error:
            raise BadRequest(str(error)) from error
        encode(scale.replicas)
        shoot = self._document("shoot", given.base)
        seed = self._document("seed", given.base)
        project = self._document("project", 0)
        profile = profile_spec_of(self._document("cloudprofile", 0))
        migration.course_of(shoot, seed["metadata"]["name"], force=given.base % 2 == 0)
        if section(shoot, "spec").get("seedName"):
            admit_migration(shoot, self._document("seed", 0), seed, project=project, profile_spec=profile)
        else:
            admit_binding(shoot, seed, project=project, profile_spec=profile, usage=given.base % 7)

    def delete(self, given: Input) -> None:
        """Read what shall be deleted, and what guards it."""
        for value in read_values(given.body):
            if not isinstance(value, dict):
                raise BadRequest("no reference")
            reference_of(cast("Document", value))
        document = self._base(given).document()
        self.admission.deletion_guards(document)
        migration.admit_deletion(document)
        self.admission.admit_deletion(document)

    def query(self, given: Input) -> None:
        """Select objects of a list."""
        tail = parse_request_subject(given.subject, SUBJECTS).tail if _is_served(given.subject) else given.subject
        _, _, rest = tail.removeprefix("api.").partition(".")
        query = read_body(given.body, ListRequest, "list")
        encode(query.seed.encode("utf-8", "replace"))
        matches = query.matches
        for document in list(self.world.documents.values())[:: len(self.world.documents) // 4]:
            if matches is not None:
                matches(document)
        list_target_of_tail(rest)

    def headers(self, given: Input) -> None:
        """Read headers and subjects."""
        if _is_served(given.subject):
            parse_request_subject(given.subject, SUBJECTS)
        validation_of(given.headers, FieldValidation.STRICT)
        is_dry_run(given.headers)
        precondition_of(given.headers)
        if given.base % 2:
            parse_report_subject(given.subject, SUBJECTS)
        key_of_tail(given.subject.partition(".")[2])

    def configuration(self, given: Input) -> None:
        """Read a configuration file."""
        readers: tuple[Callable[[bytes], object], ...] = (
            gardenlet.parse_configurations,
            member_agent.parse_configurations,
            scheduler.parse_configuration,
            seed_autoscaler.parse_configuration,
            controller_manager.parse_lifecycle,
            controller_manager.parse_managed_seed_sets,
        )
        readers[given.base % len(readers)](given.body)

    def _base(self, given: Input) -> StoredObject:
        return self._bases[given.base % len(self._bases)]

    def _document(self, kind: str, number: int) -> Document:
        of_kind = [document for key, document in self.world.documents.items() if key.kind == kind]
        return of_kind[number % len(of_kind)]


def _is_served(subject: str) -> bool:
    """True for subjects that the apiserver is given: `garden.api.>` and `garden.as.*.api.>`."""
    words = subject.split(".")
    return words[:2] == ["garden", "api"] or (
        words[:2] == ["garden", "as"] and words[3:4] == ["api"] and len(words) > 4
    )
