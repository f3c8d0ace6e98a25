"""`bind`, `cordon`, `uncordon`: where a shoot stands, and whether a seed takes new ones."""

from typing import Annotated, Any

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, qualified_name
from gardenbus.cli.commands.options import Directory, Namespace, NatsUrl, Output, Prefix, run_with_client
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.migrations.drain import set_visible
from gardenbus.cli.output.console import Format, show_document, show_lines
from gardenbus.cli.output.summaries import summarize_shoot
from gardenbus.common.api.document import Document

SeedName = Annotated[str, typer.Argument(help="Name of the seed.", metavar="SEED", autocompletion=completions.seeds)]


def bind(  # noqa: PLR0913 - one parameter an option
    shoot: Annotated[
        str,
        typer.Argument(
            help="The shoot: NAME, or NAMESPACE/NAME", metavar="SHOOT", autocompletion=completions.shoot_names
        ),
    ],
    seed: Annotated[
        str, typer.Argument(help="The seed that it shall be on.", metavar="SEED", autocompletion=completions.seeds)
    ],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Restore it from its last ShootState, because its seed is lost for good. "
            "What the old seed reports afterwards is refused.",
        ),
    ] = False,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Bind a waiting shoot to a seed, or move a placed one there (control-plane migration).

    The command returns when the migration is ordered; `gardenbus get shoot NAME -n NAMESPACE` shows how it goes.
    Binding it back to the seed that it still stands on takes the order back, so long as nothing has begun.

    Example: gardenbus bind garden-dev/apollo aws-cork
    """

    async def work(api: ApiClient) -> tuple[Document, Document]:
        before = await get_object(api, ResourceArgs("shoot", (shoot,), is_namespaced=True), shoot, namespace)
        metadata = as_mapping(before.get("metadata"))
        body: dict[str, Any] = {
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "seed": seed,
            "resourceVersion": metadata.get("resourceVersion"),
        }
        if force:
            body["force"] = True
        return before, await api.call("bind", body)

    before, after = run_with_client(work, directory, nats_url, prefix)
    if not _printed(after, output):
        show_lines([_bound(before, as_mapping(after), force=force)])


def _bound(before: Document, after: Document, *, force: bool) -> str:
    old, new = summarize_shoot(before), summarize_shoot(after)
    name = f"shoot {old.namespace}/{old.name}"
    if force:
        return f"{name} is restored on {new.seed}; {old.actual_seed or old.seed} has no say in it any more"
    if not old.seed:
        return f"{name} is bound to {new.seed}"
    if new.seed == old.actual_seed:
        return f"{name} stays on {new.seed}: the migration to {old.seed} is taken back"
    return f"{name} moves from {old.actual_seed or old.seed} to {new.seed}"


def cordon(
    seed: SeedName,
    *,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Hide a seed from the scheduler: it takes no new shoots, and keeps those that it has.

    Sets spec.settings.scheduling.visible to false, and an annotation that keeps it so when its gardenlet starts anew.

    Example: gardenbus cordon aws-dublin
    """
    _set_visible(seed, output, directory, nats_url, prefix, visible=False)


def uncordon(
    seed: SeedName,
    *,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show a seed to the scheduler again.

    Example: gardenbus uncordon aws-dublin
    """
    _set_visible(seed, output, directory, nats_url, prefix, visible=True)


def _set_visible(
    seed: str, output: Format, directory: Directory, nats_url: NatsUrl, prefix: Prefix, *, visible: bool
) -> None:
    async def work(api: ApiClient) -> tuple[Document, bool]:
        return await set_visible(api, seed, visible=visible)

    document, is_changed = run_with_client(work, directory, nats_url, prefix)
    if not _printed(document, output):
        word = "uncordoned" if visible else "cordoned"
        show_lines([f"seed {seed} {word}" if is_changed else f"seed {seed} is {word} already"])


def _printed(document: Document, output: Format) -> bool:
    if output in (Format.JSON, Format.YAML):
        show_document(document, output)
    elif output is Format.NAME:
        show_lines([qualified_name(document)])
    return output in (Format.JSON, Format.YAML, Format.NAME)
