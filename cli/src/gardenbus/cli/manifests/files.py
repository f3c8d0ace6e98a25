"""Manifests from files and folders: read, separated from configuration, put in order, cut into messages.

Everything but `read_files` and `read_bodies` is pure.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.errors import BadRequest

SUFFIXES = (".yaml", ".yml", ".json")
CHUNK_BYTES = 1024 * 1024
"""Manifests that go in one request: few enough for a response within its timeout."""

SCHEDULER_CONFIGURATION = "SchedulerConfiguration"
CONTROLLER_MANAGER_CONFIGURATION = "ControllerManagerConfiguration"
ADMISSION_CONFIGURATION = "AdmissionConfiguration"
ADMISSION_CONTROLLER_CONFIGURATION = "AdmissionControllerConfiguration"
AUTOSCALER_CONFIGURATION = "SeedAutoscalerConfiguration"
GARDENLET_CONFIGURATION = "GardenletConfiguration"
MEMBER_AGENT_CONFIGURATION = "MemberAgentConfiguration"

_ORDER = {
    kind: rank
    for rank, kind in enumerate(
        (
            "Namespace",
            "Project",
            "Secret",
            "ConfigMap",
            "InternalSecret",
            "WorkloadIdentity",
            "Quota",
            "CloudProfile",
            "NamespacedCloudProfile",
            "ExposureClass",
            "ControllerDeployment",
            "Seed",
            "BackupBucket",
        )
    )
}
_OF_PLACEMENTS = {
    "MemberCluster": 5,
    "ClusterResourcePlacementDisruptionBudget": 5,
    "ClusterResourceOverride": 5,
    "ResourceOverride": 5,
    "ClusterResourcePlacement": 6,
    "ResourcePlacement": 6,
    "ClusterResourcePlacementEviction": 7,
}
_LAST = {"Shoot": 1, "ManagedSeed": 2, "ManagedSeedSet": 3, "SeedAutoscaler": 4, **_OF_PLACEMENTS}

_JOINING = {"MemberCluster"}
"""Of them, what an agent joins by."""

_CONFIGURATION_GROUPS = (
    ".config.gardener.cloud",
    ".config.k8s.io",
    ".config.gardenbus.io",
    ".admission.gardener.cloud",
)
"""Ends of API groups whose documents configure a program, and are no objects."""

_BETWEEN_DOCUMENTS = re.compile(rb"^---[ \t]*$\n?", re.MULTILINE)


class _RawList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]


class SortedManifests(NamedTuple):
    """Sorted content of files: configurations by kind, and manifests to be applied, in order."""

    schedulers: Sequence[Document]
    controller_manager: Document | None
    gardenlets: Sequence[Document]
    manifests: Sequence[Document]
    autoscaler: Document | None = None
    admission: Document | None = None
    member_agents: Sequence[Document] = ()


def read_files(paths: Iterable[Path], *, recursive: bool = True) -> list[Document]:
    """All manifests of files, folders (*.yaml, *.yml, *.json, by name) and `-` (stdin).

    Raises BadRequest, naming the file, for what cannot be read.
    """
    return [document for _, document in read_sources(paths, recursive=recursive)]


def read_sources(paths: Iterable[Path], *, recursive: bool = True) -> list[tuple[Path, Document]]:
    """The same, each manifest with the file that it is from."""
    from gardenbus.common.api.manifests.parser import LARGEST_MESSAGE, parse  # noqa: PLC0415  `get` reads no manifests

    documents: list[tuple[Path, Document]] = []
    for path, body in read_bodies(paths, recursive=recursive):
        if not body.strip():
            continue
        try:
            for part in parts_of(body, LARGEST_MESSAGE):
                documents += [(path, document) for document in parse(part, most_manifests=len(part))]
        except BadRequest as error:
            raise BadRequest(f"{path}: {error.message}") from error
    return documents


def parts_of(body: bytes, largest: int) -> Iterator[bytes]:
    """A file in parts that can be read one by one: whole, or cut between its YAML documents, or entry by entry.

    A JSON file that is too large must be a List.
    """
    if len(body) <= largest:
        yield body
    elif body.lstrip()[:1] in (b"{", b"["):
        yield from _entries(body)
    else:
        part: list[bytes] = []
        size = 0
        for document in _BETWEEN_DOCUMENTS.split(body):
            if part and size + len(document) > largest - 1024:
                yield b"\n---\n".join(part)
                part, size = [], 0
            part.append(document)
            size += len(document) + len(b"\n---\n")
        yield b"\n---\n".join(part)


def _entries(body: bytes) -> Iterator[bytes]:
    try:
        opened = decode_json(body, _RawList)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"a file of {len(body)} bytes must be a List of manifests: {error}") from error
    yield from map(bytes, opened.items)


def read_bodies(paths: Iterable[Path], *, recursive: bool = True) -> Iterator[tuple[Path, bytes]]:
    """The content of each file. Raises BadRequest when there is none."""
    for path in paths:
        if str(path) == "-":
            yield path, sys.stdin.buffer.read()
            continue
        files = [path]
        if path.is_dir():
            inside = path.rglob("*") if recursive else path.iterdir()
            files = sorted(file for file in inside if file.suffix in SUFFIXES and file.is_file())
            if not files:
                hint = "" if recursive else " (-R looks into those below it)"
                raise BadRequest(f"{path}: no {', '.join(SUFFIXES)} in this folder{hint}")
        for file in files:
            try:
                yield file, file.read_bytes()
            except OSError as error:
                raise BadRequest(f"{file}: {error.strerror}") from error


def sort_manifests(documents: Sequence[Document], files: Sequence[Path] = ()) -> SortedManifests:
    """Separate configurations from manifests, and put the latter in an order in which each finds what it refers to.

    `files` are those of the documents. Raises BadRequest when a configuration is there twice.
    """
    configurations: dict[str, list[Document]] = {
        SCHEDULER_CONFIGURATION: [],
        CONTROLLER_MANAGER_CONFIGURATION: [],
        AUTOSCALER_CONFIGURATION: [],
        ADMISSION_CONFIGURATION: [],
        ADMISSION_CONTROLLER_CONFIGURATION: [],
        GARDENLET_CONFIGURATION: [],
        MEMBER_AGENT_CONFIGURATION: [],
    }
    manifests: list[Document] = []
    for document in documents:
        configurations.get(str(document.get("kind")), manifests).append(document)
    _check_schedulers(documents, files)
    _check_configurations(manifests, configurations)
    for kind in (
        *(CONTROLLER_MANAGER_CONFIGURATION, AUTOSCALER_CONFIGURATION, ADMISSION_CONFIGURATION),
        ADMISSION_CONTROLLER_CONFIGURATION,
    ):
        if len(configurations[kind]) > 1:
            raise BadRequest(f"{len(configurations[kind])} documents of kind {kind}: there can be one")
    names = [gardenlet_name(each) for each in configurations[GARDENLET_CONFIGURATION]]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadRequest(f"{GARDENLET_CONFIGURATION}: given twice for the seed {', '.join(twice)}")
    names = [member_agent_name(each) for each in configurations[MEMBER_AGENT_CONFIGURATION]]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadRequest(f"{MEMBER_AGENT_CONFIGURATION}: given twice under the name {', '.join(twice)}")
    return SortedManifests(
        schedulers=configurations[SCHEDULER_CONFIGURATION],
        controller_manager=next(iter(configurations[CONTROLLER_MANAGER_CONFIGURATION]), None),
        gardenlets=configurations[GARDENLET_CONFIGURATION],
        manifests=sorted(manifests, key=_rank),
        autoscaler=next(iter(configurations[AUTOSCALER_CONFIGURATION]), None),
        admission=_admission(
            next(iter(configurations[ADMISSION_CONFIGURATION]), None),
            next(iter(configurations[ADMISSION_CONTROLLER_CONFIGURATION]), None),
        ),
        member_agents=configurations[MEMBER_AGENT_CONFIGURATION],
    )


def _check_configurations(manifests: Sequence[Document], read: Iterable[str]) -> None:
    """Raise BadRequest for a component configuration that no service reads."""
    for document in manifests:
        group = str(document.get("apiVersion")).partition("/")[0]
        if group.endswith(_CONFIGURATION_GROUPS):
            kinds = ", ".join(sorted(read))
            raise BadRequest(f"kind: no service here reads {document.get('kind')} ({group}): there are {kinds}")


def _admission(admission: Document | None, controller: Document | None) -> Document | None:
    """The AdmissionConfiguration, with what an AdmissionControllerConfiguration says of sizes."""
    server = as_mapping(as_mapping(controller).get("server"))
    if controller is None or not server.get("resourceAdmissionConfiguration"):
        return admission
    from gardenbus.common.api.configuration.admission import with_admission_controller  # noqa: PLC0415

    return with_admission_controller(admission, controller)


def _check_schedulers(documents: Sequence[Document], files: Sequence[Path]) -> None:
    """Raise BadRequest when two SchedulerConfigurations have one schedulerName: both would decide on its shoots."""
    first: dict[str, int] = {}
    for index, document in enumerate(documents):
        if document.get("kind") != SCHEDULER_CONFIGURATION:
            continue
        for name in scheduler_names(document):
            before = first.setdefault(name, index)
            if before != index:
                places = f": {files[before]} and {files[index]}" if files else ""
                raise BadRequest(f"{SCHEDULER_CONFIGURATION}: given twice for the schedulerName {name}{places}")


def scheduler_name(configuration: Document) -> str:
    """The name of the process of a SchedulerConfiguration: the default scheduler's, or the first of its profiles."""
    names = scheduler_names(configuration)
    return DEFAULT_SCHEDULER if DEFAULT_SCHEDULER in names else names[0]


def scheduler_names(configuration: Document) -> list[str]:
    """The schedulerNames that a SchedulerConfiguration serves."""
    profiles = configuration.get("profiles")
    if isinstance(profiles, list) and profiles:
        named = (as_mapping(each) for each in cast("list[object]", profiles))
        return [str(each.get("schedulerName") or DEFAULT_SCHEDULER) for each in named]
    shoot = as_mapping(as_mapping(configuration.get("schedulers")).get("shoot"))
    return [str(shoot.get("schedulerName") or DEFAULT_SCHEDULER)]


def _rank(document: Document) -> int:
    kind = str(document.get("kind"))
    return _ORDER.get(kind, len(_ORDER)) + 100 * _LAST.get(kind, 0)


def is_scheduled(document: Document) -> bool:
    """True for what is scheduled onto seeds or member clusters, or makes such, and so wants these to be ready."""
    return document.get("kind") in _LAST.keys() - _JOINING


def gardenlet_name(configuration: Document) -> str:
    """The seed of a GardenletConfiguration, or "" where it names none."""
    seed_config = as_mapping(configuration.get("seedConfig"))
    return str(as_mapping(seed_config.get("metadata")).get("name") or "")


def member_agent_name(configuration: Document) -> str:
    """Name of a MemberAgentConfiguration: those of different names run side by side."""
    return str(as_mapping(configuration.get("metadata")).get("name") or "default")


def as_mapping(value: object) -> Document:
    """A mapping as it is, anything else as an empty one: for showing documents that may have any shape."""
    return value if _is_mapping(value) else {}


def _is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def chunks(documents: Sequence[Document], largest: int = CHUNK_BYTES) -> Iterator[list[Document]]:
    """Cut into runs of at most `largest` bytes of JSON each (a single larger document goes alone)."""
    chunk: list[Document] = []
    size = 0
    for document in documents:
        length = len(encode(document))
        if chunk and size + length > largest:
            yield chunk
            chunk, size = [], 0
        chunk.append(document)
        size += length
    if chunk:
        yield chunk


def as_list(documents: Sequence[Document]) -> bytes:
    """One request's body: the document itself, or a List of several."""
    if len(documents) == 1:
        return encode(documents[0])
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents})


def title(document: Document) -> str:
    """`Shoot garden-dev/apollo`, for people."""
    metadata = as_mapping(document.get("metadata"))
    namespace, name = metadata.get("namespace"), metadata.get("name")
    kind = document.get("kind") or "an object without kind"
    return f"{kind} {f'{namespace}/' if namespace else ''}{name or '(without name)'}"
