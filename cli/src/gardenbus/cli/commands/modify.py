"""`patch`, `label`, `annotate`, `edit`: changes of objects that are there, none of which overwrites another's."""

import os
import tempfile
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import typer
import yaml

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, ApiResponse
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, parse_resources
from gardenbus.cli.commands.apply import report, selected_objects
from gardenbus.cli.commands.editor import open_editor
from gardenbus.cli.commands.options import (
    AllNamespaces,
    DryRun,
    LandscapeOptions,
    Namespace,
    Output,
    Selector,
    Validate,
    check_namespaces,
    is_dry_run,
    run_with_client,
    validation_of,
)
from gardenbus.cli.manifests.files import as_mapping, title
from gardenbus.cli.manifests.patches import contested, split_pairs
from gardenbus.cli.output.console import Exit, Format, errors, exit_codes, fail_unless, show_lines
from gardenbus.cli.wait.waiter import key_of
from gardenbus.common.api.document import SERVER_METADATA, Document
from gardenbus.common.api.json_patches import patched
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError

ATTEMPTS = 8
"""Times that a change is worked out anew because somebody else was quicker; statuses change all the time."""

_CONFLICT = 409

PatchFactory = Callable[[Document], Document]
"""The merge patch for a document as it is now; {} when it needs none. Raises BadRequest, Conflict."""

Names = Annotated[
    list[str],
    typer.Argument(help="KIND NAME…, or KIND/NAME…", metavar="KIND NAME…", autocompletion=completions.objects),
]
PairWords = Annotated[
    list[str],
    typer.Argument(
        help="KIND NAME… (or KIND with -l), then KEY=VALUE to set, KEY- to remove",
        metavar="KIND NAME… KEY=VALUE…",
        autocompletion=completions.objects,
    ),
]


class PatchType(StrEnum):
    """Values of `--type`."""

    MERGE = "merge"
    JSON = "json"


class PatchOptions(NamedTuple):
    """The options of `patch`."""

    text: Annotated[str | None, typer.Option("-p", "--patch", help="The patch, as JSON or YAML.", metavar="PATCH")] = (
        None
    )
    file: Annotated[Path | None, typer.Option("--patch-file", help="A file with the patch.")] = None
    patch_type: Annotated[
        PatchType, typer.Option("--type", help="A JSON merge patch, or a list of operations (RFC 6902).")
    ] = PatchType.MERGE
    dry_run: DryRun = None
    validate: Validate = "strict"
    namespace: Namespace = None
    output: Output = Format.TABLE


def patch(words: Names, *, options: PatchOptions, landscape: LandscapeOptions) -> None:
    """Change fields of objects.

    Examples:
    gardenbus patch shoot apollo -n garden-dev -p '{"spec": {"purpose": "testing"}}'
    gardenbus patch seed aws-cork --type json -p '[{"op": "remove", "path": "/spec/taints/0"}]'
    """
    with exit_codes():
        wanted, only_checks, validation = _named(words), is_dry_run(options.dry_run), validation_of(options.validate)
        value: Any = _patch_value(options.text, options.file)
        if options.patch_type is PatchType.MERGE and as_mapping(value) != value:
            raise BadRequest("a merge patch is one mapping: {spec: {purpose: testing}}")

    def merge(_: Document) -> Document:
        return as_mapping(value)

    def operations(document: Document) -> Document:
        return merge_patch_between(document, patched(document, value))

    make = merge if options.patch_type is PatchType.MERGE else operations

    async def work(api: ApiClient) -> bool:
        documents = await _all_found(api, wanted, options.namespace, "")
        validating = api.validating(validation)
        sent = [
            await changed(validating, each, make, is_dry_run=only_checks, is_conditional=make is operations)
            for each in documents
        ]
        return report(documents, sent, options.output, verb="patched", dry=only_checks)

    fail_unless(run_with_client(work, *landscape))


def _patch_value(text: str | None, file: Path | None) -> Any:
    if (text is None) == (file is None):
        raise BadRequest("the patch: -p PATCH, or --patch-file FILE")
    from gardenbus.common.api.manifests.strict_yaml import read_yaml  # noqa: PLC0415  other commands read no YAML

    try:
        values = read_yaml(text or "" if file is None else file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the patch cannot be read: {error}") from error
    except BadRequest as error:
        raise BadRequest(f"the patch is {error.message}") from error
    return values[0] if len(values) == 1 else None


class PairOptions(NamedTuple):
    """Options that `label` and `annotate` share."""

    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also where it has another value.")] = False
    selector: Selector = ""
    dry_run: DryRun = None
    validate: Validate = "strict"
    namespace: Namespace = None
    all_namespaces: AllNamespaces = False
    output: Output = Format.TABLE


def label(words: PairWords, *, options: PairOptions, landscape: LandscapeOptions) -> None:
    """Set labels of objects, or take them away.

    Examples:
    gardenbus label shoot apollo -n garden-dev tier=gold old-
    gardenbus label seeds -l env=dev env=test --overwrite
    """
    _set_pairs("labels", words, options, landscape)


def annotate(words: PairWords, *, options: PairOptions, landscape: LandscapeOptions) -> None:
    """Set annotations of objects, or take them away.

    Example: gardenbus annotate shoot apollo -n garden-dev gardener.cloud/operation=reconcile
    """
    _set_pairs("annotations", words, options, landscape)


def _set_pairs(
    what: Literal["labels", "annotations"], words: list[str], options: PairOptions, landscape: LandscapeOptions
) -> None:
    with exit_codes():
        check_namespaces(options.namespace, all_namespaces=options.all_namespaces)
        objects, pairs = split_pairs(words)
        wanted, only_checks = _wanted(objects, options.selector), is_dry_run(options.dry_run)
        validation = validation_of(options.validate)

    def make(document: Document) -> Document:
        present = as_mapping(as_mapping(document.get("metadata")).get(what))
        if not options.overwrite and (others := pairs.already(present)):
            raise Conflict(f"{title(document)} has {', '.join(others)} already: --overwrite changes it")
        return {"metadata": {what: pairs.patch}}

    async def work(api: ApiClient) -> bool:
        documents = await _all_found(api, wanted, options.namespace, options.selector)
        if not documents:
            errors.print("nothing has these labels")
        validating = api.validating(validation)
        sent = [
            await changed(validating, each, make, is_dry_run=only_checks, is_conditional=not options.overwrite)
            for each in documents
        ]
        return report(documents, sent, options.output, verb="changed", dry=only_checks)

    fail_unless(run_with_client(work, *landscape))


def edit(
    words: Names,
    *,
    editor: Annotated[
        str | None, typer.Option("--editor", help="Instead of $VISUAL, $EDITOR or vi.", metavar="COMMAND")
    ] = None,
    validate: Validate = "strict",
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Change an object in an editor; only what was changed is sent.

    What others change meanwhile stays. Where both changed the same field nothing is written. Whenever the text is
    not taken it is kept in a file, which is named.

    Example: EDITOR=nano gardenbus edit shoot apollo -n garden-dev
    """
    with exit_codes():
        wanted, validation = _named(words), validation_of(validate)
        if len(wanted) != 1 or len(wanted[0].names) != 1:
            raise BadRequest("edit takes one object: KIND NAME")

    async def read(api: ApiClient) -> Document:
        return await get_object(api, wanted[0], wanted[0].names[0], namespace)

    document = run_with_client(read, *landscape)
    before = editable(document)
    file = _draft(before)
    is_sent = False
    try:
        with exit_codes():
            open_editor(file, editor)
            after = edited(before, file)
        if after == before:
            show_lines([f"{title(document)} unchanged"])
            is_sent = True
            return
        response = run_with_client(
            lambda api: _send_edited(api.validating(validation), document, before, after), *landscape
        )
        is_sent = report([document], [response], output, verb="edited")
        if not is_sent:
            raise typer.Exit(Exit.FAILED)
    finally:
        _finish(file, is_sent=is_sent)


def _finish(file: Path, *, is_sent: bool) -> None:
    """Remove the text that was sent; name the file of one that was not."""
    if is_sent:
        file.unlink(missing_ok=True)
    else:
        errors.print(f"your text is kept in {file}; `gardenbus apply -f` takes it")


async def _send_edited(api: ApiClient, document: Document, before: Document, after: Document) -> ApiResponse:
    difference = merge_patch_between(before, after)

    def make(current: Document) -> Document:
        if both := list(contested(before, editable(current), difference)):
            raise Conflict(f"{', '.join(both)} changed meanwhile; nothing is written")
        return difference

    return await changed(api, document, make, is_conditional=True)


def editable(document: Document) -> Document:
    """A document without what nobody edits: its status, and what the store owns of metadata."""
    metadata = {key: value for key, value in as_mapping(document.get("metadata")).items() if key not in SERVER_METADATA}
    return {**{key: value for key, value in document.items() if key != "status"}, "metadata": metadata}


def edited(before: Document, file: Path) -> Document:
    """The edited document. Raises BadRequest when it is no manifest of the same object."""
    try:
        after: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the text cannot be read: {error}") from error
    if after is None:
        return before  # an emptied file: nothing is meant
    if key_of(as_mapping(after)) != key_of(before):
        raise BadRequest(f"the text is not {title(before)} any more: kind, name and namespace stay")
    return as_mapping(after)


def _draft(document: Document) -> Path:
    """A new file with a document, that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix=f"gardenbus-{key_of(document).name}-", suffix=".yaml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("# Lines like this one are ignored. An empty file changes nothing.\n")
        yaml.safe_dump(document, file, sort_keys=False, allow_unicode=True)
    return Path(name)


async def changed(
    api: ApiClient, document: Document, make: PatchFactory, *, is_dry_run: bool = False, is_conditional: bool = False
) -> ApiResponse:
    """Patch an object; a conditional patch is worked out anew on what is there as long as others are quicker."""
    tail = f"patch.{key_of(document).tail}"
    response = ApiResponse(ok=False)
    for _ in range(ATTEMPTS):
        try:
            body = make(document)
        except (BadRequest, Conflict) as error:
            return ApiResponse(ok=False, error=_error_of(error))
        if is_conditional:
            version = as_mapping(document.get("metadata")).get("resourceVersion")
            body = {**body, "metadata": {**as_mapping(body.get("metadata")), "resourceVersion": version}}
        response = await api.request(tail, msgspec.json.encode(body), is_dry_run=is_dry_run)
        if response.ok or not is_conditional or response.error.get("code") != _CONFLICT:
            break
        document = as_mapping(await api.call(f"get.{key_of(document).tail}"))
    return response


def _error_of(error: GardenbusError) -> dict[str, Any]:
    return {"code": error.code, "reason": type(error).__name__, "message": error.message}


def _named(words: list[str]) -> list[ResourceArgs]:
    return _wanted(words, "")


def _wanted(words: list[str], selector: str) -> list[ResourceArgs]:
    if not words:
        raise BadRequest("name the objects: KIND NAME…, or KIND with -l")
    wanted = parse_resources(words)
    for one in wanted:
        if bool(one.names) == bool(selector):
            raise BadRequest(f"{one.kind}: names or -l, {'not both' if selector else 'one of them'}")
    return wanted


async def _all_found(
    api: ApiClient, wanted: Sequence[ResourceArgs], namespace: str | None, selector: str
) -> Sequence[Document]:
    if not selector:
        return [await get_object(api, one, name, namespace) for one in wanted for name in one.names]
    return await selected_objects(api, wanted, selector, namespace)
