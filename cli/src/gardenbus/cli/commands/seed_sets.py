"""`scale`, `rollout`: ManagedSeedSets."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, parse_resource
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, Output, run_with_client, seconds_of
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.manifests.revisions import (
    Revision,
    RolloutStatus,
    previous,
    revision_numbered,
    revisions_of,
    rollout_status_of,
    undo_patch,
)
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import (
    PROGRAMS,
    Exit,
    Format,
    errors,
    exit_codes,
    new_table,
    print_error,
    printed,
    show_document,
    show_lines,
    show_rows,
    yaml_text,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import BadRequest

KIND = "managedseedset"
POLL_SECONDS = 0.5

SetWords = Annotated[
    list[str],
    typer.Argument(
        help="managedseedset NAME, mss NAME or mss/NAME",
        metavar="managedseedset NAME",
        autocompletion=completions.seed_sets,
    ),
]


def scale(
    words: SetWords,
    *,
    replicas: Annotated[int, typer.Option(min=0, help="How many replicas it shall have.")],
    resource_version: Annotated[
        str | None, typer.Option(help="Only while the set has this resourceVersion (exit code 1 otherwise).")
    ] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Set how many replicas a ManagedSeedSet shall have.

    Fewer: replicas whose seeds are in use stay until they are empty (`gardenbus drain`, or spec.scaleIn.drain). A set
    that a SeedAutoscaler looks after is scaled again by that, and never to more than its maximum.

    Example: gardenbus scale managedseedset grove --replicas 3 -n garden
    """
    with exit_codes():
        wanted = _set_meant(words)

    async def work(api: ApiClient) -> tuple[Document, Document]:
        document = await get_object(api, wanted, wanted.names[0], namespace)
        metadata = as_mapping(document.get("metadata"))
        await _check_autoscalers(api, metadata, replicas)
        body: dict[str, Any] = {
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "replicas": replicas,
        }
        if resource_version is not None:
            body["resourceVersion"] = resource_version
        return document, as_mapping(await api.call("scale", body))

    document, response = run_with_client(work, *landscape)
    if output in PROGRAMS:
        show_document(response, output)
        return
    before: Any = as_mapping(document.get("spec")).get("replicas")
    name = _name(document)
    if output is Format.NAME:
        show_lines([f"managedseedset.seedmanagement.gardener.cloud/{name.rpartition('/')[2]}"])
    else:
        there = response.get("statusReplicas") or 0
        change = f"from {1 if before is None else before} to {replicas}"
        show_lines([f"managedseedset {name} is scaled {change}; {there} are there"])


async def _check_autoscalers(api: ApiClient, metadata: Document, replicas: int) -> None:
    """Warn of who will scale the set again, within which bounds. Raises BadRequest above the maximum of one."""
    for autoscaler in await api.items(f"seedautoscaler.{metadata.get('namespace')}"):
        spec, name = section(autoscaler, "spec"), section(autoscaler, "metadata").get("name")
        if section(spec, "scaleTargetRef").get("name") == metadata.get("name"):
            least: Any = spec.get("minReplicas")
            most: Any = spec.get("maxReplicas")
            if isinstance(most, int) and replicas > most:
                limit = f"spec.maxReplicas of SeedAutoscaler {metadata.get('namespace')}/{name}"
                raise BadRequest(
                    f"--replicas: must be at most {most}, {limit}, is {replicas}: seeds above "
                    "it would be built, and removed again; raise that first"
                )
            errors.print(
                f"gardenbus: warning: SeedAutoscaler {metadata.get('namespace')}/{name} scales this set, and will "
                f"scale it again, to {1 if least is None else least} at the least and {most} at the "
                "most: change these to keep it",
                style="yellow",
            )


def rollout_status(
    words: SetWords,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Wait until it is over.")] = False,
    timeout: Annotated[str, typer.Option(help="How long to wait with --watch, as 90s or 1h.")] = "1h",
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Say how far a set's replicas have its present templates; exit code 1 when the rollout has failed.

    With --watch also when it is not over in time.

    Example: gardenbus rollout status managedseedset grove -n garden --watch
    """
    with exit_codes():
        wanted = _set_meant(words)
        timeout_seconds = seconds_of(timeout)
    as_text = output not in PROGRAMS

    async def work(api: ApiClient) -> tuple[Document, RolloutStatus]:
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        printed = ""
        while True:
            document = await get_object(api, wanted, wanted.names[0], namespace)
            progress = rollout_status_of(document)
            if as_text and progress.sentence != printed:
                printed = progress.sentence
                show_lines([f"managedseedset {_name(document)}: {printed}"])
            if not watch or progress.is_over or asyncio.get_running_loop().time() >= deadline:
                return document, progress
            await asyncio.sleep(POLL_SECONDS)

    document, progress = run_with_client(work, *landscape)
    if not as_text:
        show_document(_status_document(document, progress), output)
    if progress.has_failed or (watch and not progress.is_over):
        if watch and not progress.is_over:
            print_error(f"the rollout is not over after {timeout}")
        raise typer.Exit(Exit.FAILED)


def rollout_history(
    words: SetWords,
    *,
    revision: Annotated[int | None, typer.Option(min=1, help="Show the templates of this one in full.")] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show the revisions of a set's templates, the newest last.

    Example: gardenbus rollout history mss/grove -n garden --revision 2
    """
    with exit_codes():
        wanted = _set_meant(words)

    async def work(api: ApiClient) -> list[Revision]:
        return (await _set_and_revisions(api, wanted, namespace))[1]

    revisions = run_with_client(work, *landscape)
    if revision is not None:
        with exit_codes():
            one = revision_numbered(revisions, revision)
        if output in PROGRAMS:
            show_document(_revision_document(one), output)
        else:
            show_lines([yaml_text(one.templates).rstrip()])
        return
    documents = [_revision_document(each) for each in revisions]
    if printed(output, documents, [f"controllerrevision.apps/{each.name}" for each in revisions]):
        return
    if not revisions:
        show_lines(["no revisions yet"])
    else:
        show_rows(_history(revisions))


def rollout_undo(
    words: SetWords,
    *,
    to_revision: Annotated[
        int | None, typer.Option(min=1, help="The revision to go back to (default: the one before the present).")
    ] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Give a set the templates of an earlier revision; they roll out like any other change.

    Example: gardenbus rollout undo managedseedset grove -n garden --to-revision 1
    """
    with exit_codes():
        wanted = _set_meant(words)

    async def work(api: ApiClient) -> tuple[Document, Revision, bool]:
        document, revisions = await _set_and_revisions(api, wanted, namespace)
        revision = previous(document, revisions) if to_revision is None else revision_numbered(revisions, to_revision)
        patch = undo_patch(document, revision)
        if not patch:
            return document, revision, False
        metadata = as_mapping(document.get("metadata"))
        tail = f"patch.{KIND}.{metadata.get('namespace')}.{metadata.get('name')}"
        return as_mapping(await api.call(tail, patch)), revision, True

    document, revision, is_changed = run_with_client(work, *landscape)
    if output in PROGRAMS:
        show_document(document, output)
    elif is_changed:
        show_lines([f"managedseedset {_name(document)} has the templates of revision {revision.number} again"])
    else:
        show_lines([f"managedseedset {_name(document)} has the templates of revision {revision.number} already"])


async def _set_and_revisions(
    api: ApiClient, wanted: ResourceArgs, namespace: str | None
) -> tuple[Document, list[Revision]]:
    document = await get_object(api, wanted, wanted.names[0], namespace)
    scope = as_mapping(document.get("metadata")).get("namespace")
    return document, revisions_of(document, await api.items(f"controllerrevision.{scope}"))


def _set_meant(words: list[str]) -> ResourceArgs:
    wanted = parse_resource(words)
    if wanted.kind != KIND or len(wanted.names) != 1:
        raise BadRequest("name the set: managedseedset NAME (or mss/NAME); nothing else has replicas")
    return wanted


def _history(revisions: list[Revision]) -> Table:
    table = new_table("REVISION", "NAME", "AGE", "IN USE AS")
    now = datetime.now(UTC)
    for each in revisions:
        table.add_row(str(each.number), each.name, age_of(each.created, now), ",".join(each.roles))
    return table


def _revision_document(revision: Revision) -> Document:
    return {
        "revision": revision.number,
        "name": revision.name,
        "creationTimestamp": revision.created,
        "inUseAs": list(revision.roles),
        "data": revision.templates,
    }


def _status_document(document: Document, progress: RolloutStatus) -> Document:
    status = as_mapping(document.get("status"))
    names = ("currentRevision", "updateRevision", "replicas", "currentReplicas", "updatedReplicas", "readyReplicas")
    return {
        "name": _name(document),
        "over": progress.is_over,
        "failed": progress.has_failed,
        "message": progress.sentence,
        **{name: status.get(name) for name in names},
        "conditions": status.get("conditions") or [],
    }


def _name(document: Document) -> str:
    metadata = as_mapping(document.get("metadata"))
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
