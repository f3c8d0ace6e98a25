"""`apply`, `delete`, `get`, `describe`: objects."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import yaml
from rich.markup import escape
from rich.text import Text

from gardenbus.cli.client import Answer, ApiClient
from gardenbus.cli.commands.naming import found, meant, shown_name, subject_tail
from gardenbus.cli.commands.options import Directory, Files, Namespace, NatsUrl, Output, Prefix, asked
from gardenbus.cli.documents import as_mapping, chunks, read_files, sort_out, title
from gardenbus.cli.output import (
    Exit,
    Format,
    console,
    errors,
    exit_codes,
    say_refusal,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.cli.tables import Context, objects_table
from gardenbus.common.errors import BadRequest
from gardenbus.common.resources.document import Document

CONFIRMATION = "confirmation.gardener.cloud/deletion"
TABLES = (Format.TABLE, Format.WIDE)

Words = Annotated[list[str], typer.Argument(help="KIND, KIND NAME… or KIND/NAME", metavar="KIND [NAME]…")]


def apply(
    *,
    files: Files,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Create or update what the manifests say; exit code 1 when one of them is refused."""
    with exit_codes():
        documents = manifests_of(files)

    async def work(api: ApiClient) -> list[Answer]:
        return [answer for chunk in chunks(documents) for answer in await api.apply(chunk)]

    _report(documents, asked(work, directory, nats_url, prefix), output)


def manifests_of(files: Sequence[Path]) -> Sequence[Document]:
    """The manifests of files; says of configurations that they are for `up`. Raises BadRequest when there is none."""
    given = sort_out(read_files(files))
    others = [given.scheduler, given.controller_manager, given.autoscaler, *given.gardenlets]
    counts = Counter(str(each.get("kind")) for each in others if each is not None)
    for kind, count in counts.items():
        errors.print(f"gardenbus: left out {count} {kind}: it is for `gardenbus up -f`", style="yellow", markup=False)
    if not given.manifests:
        raise BadRequest(f"no manifests in {', '.join(map(str, files))}")
    return given.manifests


def delete(  # noqa: PLR0913 - one parameter an option
    words: Annotated[list[str] | None, typer.Argument(help="KIND NAME… or KIND/NAME", metavar="[KIND NAME…]")] = None,
    *,
    namespace: Namespace = None,
    files: Annotated[
        list[Path] | None, typer.Option("-f", "--filename", help="Delete what these manifests name.")
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help=f"Set {CONFIRMATION} first (Shoots and Projects need it).")
    ] = False,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Delete objects; exit code 1 when one is refused."""
    with exit_codes():
        documents = _to_delete(words, files, namespace)

    async def work(api: ApiClient) -> list[Answer]:
        answers: list[Answer] = []
        for document in documents:
            if confirm:
                answer = await _confirmed(api, document)
                if not answer.ok:
                    answers.append(answer)
                    continue
            answers += await api.delete([document])
        return answers

    _report(documents, asked(work, directory, nats_url, prefix), output, verb="deleted")


def _to_delete(words: list[str] | None, files: list[Path] | None, namespace: str | None) -> Sequence[Document]:
    if bool(words) == bool(files):
        raise BadRequest("say what to delete: KIND NAME, or -f FILE")
    if files:
        return list(reversed(manifests_of(files)))
    wanted = meant(words or [])
    if not wanted.names:
        raise BadRequest(f"{wanted.kind}: say which one")
    return [_reference(subject_tail(wanted, name, namespace)) for name in wanted.names]


def _reference(tail: str) -> Document:
    kind, namespace, name = tail.split(".", 2)
    scope = {} if namespace == "_" else {"namespace": namespace}
    return {"kind": kind, **scope, "name": name}


async def _confirmed(api: ApiClient, reference: Document) -> Answer:
    metadata = as_mapping(reference.get("metadata")) or reference
    kind, namespace = str(reference.get("kind")).lower(), metadata.get("namespace") or "_"
    patch = {"metadata": {"annotations": {CONFIRMATION: "true"}}}
    return await api.answer(f"patch.{kind}.{namespace}.{metadata.get('name')}", msgspec.json.encode(patch))


def _report(documents: Sequence[Document], answers: Sequence[Answer], output: Format, verb: str = "applied") -> None:
    results: list[Any] = []
    for document, answer in zip(documents, answers, strict=True):
        for warning in answer.warnings:
            errors.print(f"warning: {escape(_title(document))}: {escape(warning)}", style="yellow")
        if not answer.ok:
            say_refusal(answer.error, _title(document))
            if verb == "deleted" and CONFIRMATION in str(answer.error.get("message")):
                errors.print("  `gardenbus delete --confirm` sets it", markup=False)
            continue
        results.append(answer.result)
        if output in TABLES:
            show_lines([f"{_title(document)} {answer.outcome or verb}"])
        elif output is Format.NAME:
            show_lines([shown_name(as_mapping(answer.result) or document)])
    if output in (Format.JSON, Format.YAML):
        show_document(results[0] if len(results) == 1 else {"kind": "List", "items": results}, output)
    if not all(answer.ok for answer in answers):
        raise typer.Exit(Exit.REFUSED)


def _title(document: Document) -> str:
    return title(document if "metadata" in document else {**document, "metadata": document})


def describe(
    words: Words,
    *,
    namespace: Namespace = None,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show an object in full, why it waits (a Shoot), and its Events."""
    with exit_codes():
        wanted = meant(words)
        if len(wanted.names) != 1:
            raise BadRequest("describe takes one object: KIND NAME")

    async def work(api: ApiClient) -> tuple[Document, list[Document]]:
        document = await found(api, wanted, wanted.names[0], namespace)
        scope = as_mapping(document.get("metadata")).get("namespace") or "_"
        return document, events_about(await api.items(f"event.{scope}"), wanted.kind, document)

    document, events = asked(work, directory, nats_url, prefix)
    console.print(Text(title(document), style="bold"))
    show_lines([yaml.safe_dump(_readable(document), sort_keys=False, allow_unicode=True).rstrip(), ""])
    console.print(Text("Events", style="bold"))
    if events:
        show_rows(objects_table("event", events, Context(datetime.now(UTC), {}), wide=False))
    else:
        show_lines(["none in the last 24 hours"])


def events_about(events: Sequence[Document], kind: str, document: Document) -> list[Document]:
    """The Events that are about one object (by its kind and name)."""
    name = as_mapping(document.get("metadata")).get("name")
    return [
        event
        for event in events
        if (about := as_mapping(event.get("involvedObject"))).get("name") == name
        and str(about.get("kind")).lower() == kind
    ]


def _readable(document: Document) -> Document:
    metadata = {key: value for key, value in as_mapping(document.get("metadata")).items() if key != "managedFields"}
    return {**document, "metadata": metadata}
