"""`diff`: what `apply` would change."""

from collections.abc import Sequence

import typer

from gardenbus.cli.client.api import ApiClient, ApiResponse
from gardenbus.cli.commands.apply import FileNamespace, Recursive, manifests_of, placed, show_warnings
from gardenbus.cli.commands.options import Files, LandscapeOptions, Validate, run_with_client, validation_of
from gardenbus.cli.manifests.differences import unified_diff
from gardenbus.cli.manifests.files import as_mapping, chunks, title
from gardenbus.cli.output.console import Exit, console, exit_codes, is_animated, print_api_error, show_lines
from gardenbus.cli.wait.waiter import key_of

_NOT_FOUND = 404
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def diff(
    *,
    files: Files,
    recursive: Recursive = False,
    namespace: FileNamespace = None,
    validate: Validate = "strict",
    landscape: LandscapeOptions,
) -> None:
    """Show what `apply` would change, as the server would merge and default it; nothing is written.

    Exit code 0 when nothing would change, 1 when something would, 2 or more when it cannot be determined.

    Example: gardenbus diff -f landscape/ -R
    """
    with exit_codes():
        validation = validation_of(validate)
        documents = [placed(each, namespace) for each in manifests_of(files, recursive=recursive)]

    async def work(api: ApiClient) -> tuple[list[ApiResponse], list[ApiResponse]]:
        present = [await api.request(f"get.{key_of(document).tail}") for document in documents]
        applied: list[ApiResponse] = []
        validating = api.validating(validation)
        for chunk in chunks(documents):
            applied += await validating.apply(chunk, is_dry_run=True)
        return present, applied

    present, applied = run_with_client(work, *landscape)
    show_warnings(applied)
    is_different = False
    is_rejected = False
    for document, before, after in zip(documents, present, applied, strict=True):
        is_readable = before.ok or before.error.get("code") == _NOT_FOUND
        if not is_readable or not after.ok:
            print_api_error((after if is_readable else before).error, title(document))
            is_rejected = True
            continue
        now = as_mapping(before.result) if before.ok else None
        lines = unified_diff(now, as_mapping(after.result), title(document))
        is_different = is_different or bool(lines)
        _show(lines)
    if is_rejected:
        raise typer.Exit(Exit.USAGE)
    if is_different:
        raise typer.Exit(Exit.FAILED)


def _show(lines: Sequence[str]) -> None:
    if not is_animated(console):
        show_lines(lines)
        return
    for line in lines:
        console.print(line, style=_COLOURS.get(line[:1], ""), soft_wrap=True)
