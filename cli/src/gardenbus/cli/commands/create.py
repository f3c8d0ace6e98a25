"""`create`, `replace`: manifests as they stand, of objects that are not there yet, or that are there."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import msgspec
import typer

from gardenbus.cli.client.api import ApiClient, ApiResponse
from gardenbus.cli.commands.apply import FileNamespace, Recursive, manifests_of, placed, report
from gardenbus.cli.commands.modify import changed, editable
from gardenbus.cli.commands.options import (
    DryRun,
    Files,
    LandscapeOptions,
    Output,
    Timeout,
    Validate,
    is_dry_run,
    run_with_client,
    seconds_of,
    validation_of,
)
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import Format, exit_codes, fail_unless
from gardenbus.cli.wait.conditions import parse_condition, progress_text
from gardenbus.cli.wait.waiter import key_of, wait_until
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.merge_patches import replacing_patch
from gardenbus.common.errors import BadRequest, Conflict

Sent = tuple[Document, ApiResponse]
"""A manifest as it was sent, and the response to it."""

_CONFLICT = 409
_NOT_FOUND = 404


def create(  # noqa: PLR0913 - one parameter an option
    *,
    files: Files,
    recursive: Recursive = False,
    namespace: FileNamespace = None,
    dry_run: DryRun = None,
    validate: Validate = "strict",
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Create objects from manifests, unless they exist.

    Exit code 1 when one of them is there, or is rejected; the others are created. A manifest with generateName instead
    of a name gets a name that begins with it.

    Example: gardenbus create -f shoot.yaml
    """
    with exit_codes():
        only_checks, validation = is_dry_run(dry_run), validation_of(validate)
        documents = [placed(each, namespace) for each in manifests_of(files, recursive=recursive)]

    async def one(api: ApiClient, document: Document) -> Sent:
        return await created_by_name(api.validating(validation), document, is_dry_run=only_checks)

    _each(documents, one, output, landscape, verb="created", is_dry_run=only_checks)


def replace(  # noqa: PLR0913 - one parameter an option
    *,
    files: Files,
    recursive: Recursive = False,
    namespace: FileNamespace = None,
    force: Annotated[
        bool, typer.Option("--force", help="Delete the object, wait until it is gone, create it.")
    ] = False,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="With --force: confirm the deletion (Shoots and Projects need it).")
    ] = False,
    timeout: Timeout = "5m",
    dry_run: DryRun = None,
    validate: Validate = "strict",
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Replace existing objects by manifests: fields that the manifest does not have are removed.

    With --force an object is deleted, waited for and created anew, without the finalizers that a copy of it has. It is
    not created where it is not gone within --timeout.

    What the system sets stays without --force: status, finalizers, the seed of a placed shoot, its own labels and
    annotations. A manifest with a resourceVersion replaces that version only.

    Examples:
    gardenbus get shoot apollo -n garden-dev -o yaml > apollo.yaml; gardenbus replace -f apollo.yaml
    gardenbus replace -f apollo.yaml --force --confirm
    """
    with exit_codes():
        only_checks, timeout_seconds = is_dry_run(dry_run), seconds_of(timeout)
        validation = validation_of(validate)
        if confirm and not force:
            raise BadRequest("--confirm goes with --force: nothing is deleted without it")
        if force and only_checks:
            raise BadRequest("--force has no dry run: what would be created depends on what is gone by then")
        documents = [placed(each, namespace) for each in manifests_of(files, recursive=recursive)]

    async def one(api: ApiClient, document: Document) -> Sent:
        api = api.validating(validation)
        if force:
            return document, await recreated(api, document, timeout_seconds, confirms=confirm)
        return document, await replaced(api, document, is_dry_run=only_checks)

    _each(documents, one, output, landscape, verb="replaced", is_dry_run=only_checks)


def _each(
    documents: Sequence[Document],
    send: Callable[[ApiClient, Document], Awaitable[Sent]],
    output: Format,
    landscape: LandscapeOptions,
    *,
    verb: str,
    is_dry_run: bool,
) -> None:
    """Send each manifest by itself, and print what became of it."""

    async def work(api: ApiClient) -> bool:
        sent = [await send(api, document) for document in documents]
        named = [msgspec.structs.replace(each, outcome=each.outcome and verb) for _, each in sent]
        return report([document for document, _ in sent], named, output, verb=verb, dry=is_dry_run)

    fail_unless(run_with_client(work, *landscape))


_SUFFIX_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names: no word comes of them. Source: apimachinery's `pkg/util/rand`."""
_SUFFIX_LENGTH, _LONGEST_PREFIX = 5, 58
_MORE_TRIES = 7
"""Further names that are tried where the first is taken."""


def named_by_prefix(document: Document) -> Document:
    """A manifest with a name made of its `generateName`; itself where it states its name, or neither."""
    metadata = as_mapping(document.get("metadata"))
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return document
    return {**document, "metadata": {**metadata, "name": f"{prefix[:_LONGEST_PREFIX]}{random_suffix()}"}}


def random_suffix() -> str:
    """The end of a generated name."""
    return "".join(secrets.choice(_SUFFIX_CHARACTERS) for _ in range(_SUFFIX_LENGTH))


async def created_by_name(api: ApiClient, document: Document, *, is_dry_run: bool = False) -> Sent:
    """Create an object, under a name that is made for it where its manifest has `generateName`. Raises Unavailable."""
    named = named_by_prefix(document)
    response = await created(api, named, is_dry_run=is_dry_run)
    for _ in range(_MORE_TRIES):
        if named is document or response.error.get("code") != _CONFLICT:
            break
        named = named_by_prefix(document)
        response = await created(api, named, is_dry_run=is_dry_run)
    return named, response


async def created(api: ApiClient, document: Document, *, is_dry_run: bool = False) -> ApiResponse:
    """Create an object unless it exists. Raises Unavailable."""
    tail = key_of(document).tail
    response = await api.request("apply", encode(document), is_dry_run=is_dry_run, condition=f"{tail}=0")
    if response.error.get("code") == _CONFLICT and (await api.request(f"get.{tail}")).ok:
        message = "it exists already: `gardenbus apply` changes it, `gardenbus replace` replaces it"
        return ApiResponse(ok=False, error={"code": _CONFLICT, "reason": "AlreadyExists", "message": message})
    return response


async def replaced(api: ApiClient, document: Document, *, is_dry_run: bool = False) -> ApiResponse:
    """Make an object that is there what a manifest says. Raises Unavailable."""
    present = await api.request(f"get.{key_of(document).tail}")
    if not present.ok:
        return _missing(present)
    version = as_mapping(document.get("metadata")).get("resourceVersion")

    def make(current: Document) -> Document:
        if version not in (None, "", as_mapping(current.get("metadata")).get("resourceVersion")):
            raise Conflict(f"metadata.resourceVersion: it has another version by now than {version}; read it anew")
        return replacing_patch(editable(current), editable(document))

    return await changed(api, as_mapping(present.result), make, is_dry_run=is_dry_run, is_conditional=True)


async def recreated(api: ApiClient, document: Document, timeout_seconds: float, *, confirms: bool) -> ApiResponse:
    """Delete an object, wait until it is gone, and create it. Raises Unavailable."""
    key = key_of(document)
    reference: Document = {"kind": key.kind, "name": key.name, **({"confirm": True} if confirms else {})}
    if key.namespace:
        reference["namespace"] = key.namespace
    (deleted,) = await api.delete([reference])
    if not deleted.ok:
        return _missing(deleted)
    left = await wait_until(api, {key: parse_condition("delete")}, timeout_seconds, lambda _: None)
    if not left:
        return await created(api, as_new(document))
    found = left[key] or {}
    finalizers = as_mapping(found.get("metadata")).get("finalizers") or ()
    held = f"the finalizers {', '.join(map(str, finalizers))} keep it" if finalizers else progress_text(found)
    message = (
        f"it is not gone within {timeout_seconds:g} s ({held}): nothing was created; `gardenbus create -f` does it"
    )
    return ApiResponse(ok=False, error={"code": _CONFLICT, "reason": "Conflict", "message": message})


def as_new(document: Document) -> Document:
    """A manifest of an object that is not there; of one that was read from a landscape without its finalizers.

    They belong to whoever set them on the object that is gone: nobody would take them from the new one.
    """
    new, metadata = editable(document), as_mapping(document.get("metadata"))
    if metadata.get("uid"):
        new["metadata"] = {name: value for name, value in new["metadata"].items() if name != "finalizers"}
    return new


def _missing(response: ApiResponse) -> ApiResponse:
    """The same response; of an object that is not there it says which command creates it."""
    if response.error.get("code") != _NOT_FOUND:
        return response
    message = f"{response.error.get('message')}: `gardenbus create -f` creates it"
    return ApiResponse(ok=False, error={**response.error, "message": message})
