"""`apply`, `delete`: objects from manifests, and by name."""

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, ApiResponse
from gardenbus.cli.client.resource_args import ResourceArgs, parse_resources, qualified_name, subject_tail
from gardenbus.cli.commands.options import (
    DryRun,
    Files,
    LandscapeOptions,
    Namespace,
    Output,
    Selector,
    Timeout,
    Validate,
    check_namespaces,
    is_dry_run,
    run_with_client,
    seconds_of,
    validation_of,
)
from gardenbus.cli.manifests.files import as_mapping, chunks, read_files, sort_manifests, title
from gardenbus.cli.output.console import (
    PROGRAMS,
    Format,
    errors,
    exit_codes,
    fail_unless,
    is_animated,
    print_api_error,
    print_error,
    show_document,
    show_lines,
)
from gardenbus.cli.wait.conditions import WaitCondition, failure_message, parse_condition, progress_text
from gardenbus.cli.wait.waiter import key_of, wait_until
from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.errors import BadRequest, Unavailable

TABLES = (Format.TABLE, Format.WIDE)
AWAITED = frozenset({"shoot", "managedseedset"})
"""Kinds that somebody carries out, so that `apply --wait` has something to wait for."""

NOT_FOUND = 404

STEP = 50
"""Manifests in one request at most: it has one response."""

FileNamespace = Annotated[str | None, typer.Option("-n", "--namespace", help="Namespace of manifests that name none.")]
IgnoreNotFound = Annotated[bool, typer.Option("--ignore-not-found", help="Succeed although objects do not exist.")]
Recursive = Annotated[bool, typer.Option("-R", "--recursive", help="Folders with those below them.")]


class ApplyOptions(NamedTuple):
    """The options of `apply`."""

    files: Files
    recursive: Recursive = False
    namespace: FileNamespace = None
    dry_run: DryRun = None
    validate: Validate = "strict"
    wait: Annotated[bool, typer.Option("--wait", help="Return when Shoots and ManagedSeedSets meet --until.")] = False
    until_condition: Annotated[
        str, typer.Option("--until", help="Condition of --wait: scheduled or reconciled.", metavar="GOAL")
    ] = "reconciled"
    timeout: Timeout = "5m"
    output: Output = Format.TABLE


def apply(*, options: ApplyOptions, landscape: LandscapeOptions) -> None:
    """Create or update what the manifests say: one line an object, created, configured or unchanged.

    Exit code 1 when one of them is rejected, or does not come to what is waited for.

    Examples:
    gardenbus apply -f landscape/ -R
    gardenbus apply -f shoot.yaml --dry-run=server -o yaml
    gardenbus apply -f shoot.yaml --wait --timeout 10m
    """
    with exit_codes():
        validation, only_checks, timeout_seconds, condition_text = (
            validation_of(options.validate),
            is_dry_run(options.dry_run),
            seconds_of(options.timeout),
            parse_condition(options.until_condition),
        )
        if condition_text.text not in ("scheduled", "reconciled"):
            raise BadRequest(f"--until {options.until_condition!r}: scheduled or reconciled")
        documents = [
            placed(each, options.namespace) for each in manifests_of(options.files, recursive=options.recursive)
        ]

    async def work(api: ApiClient) -> tuple[list[ApiResponse], bool]:
        api = api.validating(validation)
        responses, outage = await _sent(documents, partial(api.apply, is_dry_run=only_checks))
        is_done = report(documents[: len(responses)], responses, options.output, dry=only_checks)
        if outage is not None:
            raise outage
        awaited = _awaited(documents, responses, condition_text) if options.wait and not only_checks else {}
        return responses, await wait_for_conditions(api, awaited, timeout_seconds) and is_done

    _, is_done = run_with_client(work, *landscape)
    fail_unless(is_done)


async def _sent(
    documents: Sequence[Document], send: Callable[[Sequence[Document]], Awaitable[list[ApiResponse]]]
) -> tuple[list[ApiResponse], Unavailable | None]:
    """Send documents, a few at a time: responses in order, and why the rest has none."""
    responses: list[ApiResponse] = []
    with _progress(len(documents)) as advance:
        for chunk in chunks(documents):
            for first in range(0, len(chunk), STEP):
                try:
                    responses += await send(chunk[first : first + STEP])
                except Unavailable as error:
                    done = f" (after {len(responses)} of {len(documents)} manifests)" if len(documents) > 1 else ""
                    return responses, Unavailable(f"{error}{done}")
                if advance:
                    advance(len(responses))
    return responses, None


def _awaited(
    documents: Sequence[Document], responses: Sequence[ApiResponse], condition_text: WaitCondition
) -> dict[ObjectKey, WaitCondition]:
    keys = [key_of(document) for document, response in zip(documents, responses, strict=True) if response.ok]
    return {
        key: condition_text
        for key in keys
        if key.kind == "shoot" or (key.kind in AWAITED and condition_text.text == "reconciled")
    }


def placed(document: Document, namespace: str | None) -> Document:
    """A manifest with its namespace, where it names none and its kind wants one."""
    metadata = as_mapping(document.get("metadata"))
    kind = KINDS.get(str(document.get("kind")).lower())
    if namespace is None or metadata.get("namespace") or kind is None or kind.namespaced is not True:
        return document
    return {**document, "metadata": {**metadata, "namespace": namespace}}


async def wait_for_conditions(api: ApiClient, awaited: dict[ObjectKey, WaitCondition], timeout_seconds: float) -> bool:
    """Wait for goals, a line for each that is reached; say of the others how they stand."""
    if not awaited:
        return True
    left = await wait_until(api, awaited, timeout_seconds, lambda key: show_lines([f"{key} {awaited[key].past}"]))
    for key, document in left.items():
        if failure := failure_message(document):
            print_error(f"{key}: Failed: {failure}")
        else:
            print_error(f"{key}: not {awaited[key].unmet} within {timeout_seconds:g} s ({progress_text(document)})")
    return not left


@contextlib.contextmanager
def _progress(total: int) -> Generator[Callable[[int], None] | None]:
    """A bar on a terminal where there is much to do; call what it yields with the number that is done."""
    if total <= STEP or not is_animated(errors):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bars:
        task = bars.add_task("manifests", total=total)
        yield lambda done: bars.update(task, completed=done)


def manifests_of(files: Sequence[Path], *, recursive: bool = True) -> Sequence[Document]:
    """The manifests of files; says of configurations that they are for `up`. Raises BadRequest when there is none."""
    given = sort_manifests(read_files(files, recursive=recursive))
    ones = [given.controller_manager, given.autoscaler, given.admission]
    others = [*given.schedulers, *ones, *given.gardenlets, *given.member_agents]
    counts = Counter(str(each.get("kind")) for each in others if each is not None)
    for kind, count in counts.items():
        errors.print(f"gardenbus: left out {count} {kind}: it is for `gardenbus up -f`", style="yellow")
    if not given.manifests:
        raise BadRequest(f"no manifests in {', '.join(map(str, files))}")
    return given.manifests


class DeleteOptions(NamedTuple):
    """The options of `delete`."""

    namespace: Namespace = None
    files: Annotated[list[Path] | None, typer.Option("-f", "--filename", help="Delete what these manifests name.")] = (
        None
    )
    recursive: Recursive = False
    selector: Selector = ""
    delete_all: Annotated[
        bool, typer.Option("--all", help="All objects of the KIND, in the namespace or with -A in every one.")
    ] = False
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="In all namespaces (--all wants this, or -n).")
    ] = False
    confirm: Annotated[
        bool, typer.Option("--confirm", help=f"Set {CONFIRMATION} first (Shoots and Projects need it).")
    ] = False
    ignore_not_found: IgnoreNotFound = False
    dry_run: DryRun = None
    wait: Annotated[bool, typer.Option("--wait", help="Return when they are gone.")] = False
    timeout: Timeout = "5m"
    output: Output = Format.TABLE


def delete(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="KIND NAME…, KIND/NAME…, or KIND with -l or --all",
            metavar="[KIND NAME…]",
            autocompletion=completions.objects,
        ),
    ] = None,
    *,
    options: DeleteOptions,
    landscape: LandscapeOptions,
) -> None:
    """Delete objects; exit code 1 when one is rejected, or is not gone in time.

    Examples:
    gardenbus delete shoot apollo -n garden-dev --confirm --wait
    gardenbus delete shoots -l purpose=evaluation -n garden-dev --confirm
    gardenbus delete secrets --all -n garden-dev
    gardenbus delete -f landscape/
    """
    with exit_codes():
        only_checks, timeout_seconds = is_dry_run(options.dry_run), seconds_of(options.timeout)
        wanted = _wanted(words, options)
        is_chosen = bool(options.selector) or options.delete_all
        documents: Sequence[Document] = () if is_chosen else _named(wanted, options)

    async def work(api: ApiClient) -> bool:
        chosen = await selected_objects(api, wanted, options.selector, options.namespace) if is_chosen else documents
        deletions = [{**document, "confirm": True} for document in chosen] if options.confirm else chosen
        responses, outage = await _sent(deletions, partial(api.delete, is_dry_run=only_checks))
        chosen = chosen[: len(responses)]
        if options.ignore_not_found:
            is_there = [response.ok or response.error.get("code") != NOT_FOUND for response in responses]
            chosen, responses = list(compress(chosen, is_there)), list(compress(responses, is_there))
        elif not chosen and outage is None:
            errors.print(
                "nothing has these labels" if options.selector else f"no {', '.join(one.kind for one in wanted)} found"
            )
        is_done = report(chosen, responses, options.output, verb="deleted", dry=only_checks)
        if outage is not None:
            raise outage
        gone = parse_condition("delete")
        accepted = [key_of(each) for each, response in zip(chosen, responses, strict=True) if response.ok]
        awaited = dict.fromkeys(accepted, gone) if options.wait and not only_checks else {}
        return await wait_for_conditions(api, awaited, timeout_seconds) and is_done

    fail_unless(run_with_client(work, *landscape))


def _wanted(words: list[str] | None, options: DeleteOptions) -> Sequence[ResourceArgs]:
    """Read what is to be deleted. Raises BadRequest unless it is clear; --all needs a word about namespaces."""
    if bool(words) == bool(options.files):
        raise BadRequest("name what to delete: KIND NAME, KIND -l LABELS, KIND --all, or -f FILE")
    is_all, chooser = options.delete_all, "-l" if options.selector else "--all"
    is_chosen = bool(options.selector) or is_all
    if options.files and is_chosen:
        raise BadRequest(f"{chooser} chooses among objects of a KIND, not of files")
    wanted = parse_resources(words) if words else []
    if options.selector and is_all:
        raise BadRequest("-l or --all, not both")
    check_namespaces(options.namespace, all_namespaces=options.all_namespaces)
    if is_chosen and (named := [one.kind for one in wanted if one.names]):
        raise BadRequest(f"{named[0]}: names or {chooser}, not both")
    is_anywhere = not options.namespace and not options.all_namespaces
    if is_all and is_anywhere and (scoped := [one for one in wanted if one.is_namespaced]):
        raise BadRequest(f"--all of {scoped[0].kind}: name the namespace with -n, or in all of them with -A")
    return wanted


def _named(wanted: Sequence[ResourceArgs], options: DeleteOptions) -> Sequence[Document]:
    if options.files:
        manifests = manifests_of(options.files, recursive=options.recursive)
        return [placed(each, options.namespace) for each in reversed(manifests)]
    if nameless := [one.kind for one in wanted if not one.names]:
        raise BadRequest(f"{nameless[0]}: name it, or choose with -l or --all")
    return [_reference(subject_tail(one, name, options.namespace)) for one in wanted for name in one.names]


async def selected_objects(
    api: ApiClient, wanted: Sequence[ResourceArgs], selector: str, namespace: str | None
) -> Sequence[Document]:
    """The objects of some kinds with these labels."""
    return [
        document
        for one in wanted
        for document in await api.items(
            f"{one.kind}.{namespace}" if namespace and one.is_namespaced else one.kind, {"labelSelector": selector}
        )
    ]


def _reference(tail: str) -> Document:
    kind, namespace, name = tail.split(".", 2)
    scope = {} if namespace == "_" else {"namespace": namespace}
    return {"kind": kind, **scope, "name": name}


def report(
    documents: Sequence[Document],
    responses: Sequence[ApiResponse],
    output: Format,
    *,
    verb: str = "applied",
    dry: bool = False,
) -> bool:
    """Print what became of each object; returns whether none was rejected."""
    results: list[Any] = []
    show_warnings(responses)
    for document, response in zip(documents, responses, strict=True):
        if not response.ok:
            print_api_error(response.error, _title(document))
            if verb == "deleted" and CONFIRMATION in str(response.error.get("message")):
                errors.print("  `gardenbus delete --confirm` sets it")
            continue
        results.append(response.result)
        if output in TABLES:
            show_lines([f"{_title(document)} {response.outcome or verb}{' (server dry run)' if dry else ''}"])
        elif output is Format.NAME:
            result = as_mapping(response.result)
            show_lines([qualified_name(result if "kind" in result else document)])
    if output in PROGRAMS:
        show_document(results[0] if len(results) == 1 else {"kind": "List", "items": results}, output)
    return all(response.ok for response in responses)


def show_warnings(responses: Sequence[ApiResponse]) -> None:
    """Print the warnings of responses, each once."""
    for warning in dict.fromkeys(warning for response in responses for warning in response.warnings):
        errors.print(f"warning: {warning}", style="yellow")


def _title(document: Document) -> str:
    return title(document if "metadata" in document else {**document, "metadata": document})
