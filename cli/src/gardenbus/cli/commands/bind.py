"""`bind`, `cordon`, `uncordon`: where a shoot stands, and whether a seed takes new ones."""

from typing import Annotated, Any, NamedTuple

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, object_name, qualified_name
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, Output, Selector, run_with_client
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.migrations.drain import set_visible
from gardenbus.cli.output.console import (
    PROGRAMS,
    Format,
    errors,
    exit_codes,
    fail_unless,
    print_api_error,
    printed,
    show_document,
    show_lines,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.errors import BadRequest

SeedName = Annotated[str, typer.Argument(help="Name of the seed.", metavar="SEED", autocompletion=completions.seeds)]
SeedNames = Annotated[
    list[str] | None, typer.Argument(help="Names of seeds, or -l.", metavar="SEED…", autocompletion=completions.seeds)
]


class BindOptions(NamedTuple):
    """The options of `bind`."""

    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Restore it from its last ShootState, because its seed is lost for good. "
            "What the old seed reports afterwards is rejected.",
        ),
    ] = False
    namespace: Namespace = None
    output: Output = Format.TABLE


def bind(
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
    options: BindOptions,
    landscape: LandscapeOptions,
) -> None:
    """Bind a waiting shoot to a seed, or move a placed one there (control-plane migration).

    The command returns when the migration is ordered; `gardenbus get shoot NAME -n NAMESPACE` shows how it goes.
    Binding it back to the seed that it still stands on takes the order back, so long as nothing has begun.

    Example: gardenbus bind garden-dev/apollo aws-cork
    """
    with exit_codes():
        shoot, seed = object_name(shoot, "shoot"), object_name(seed, "seed")

    async def work(api: ApiClient) -> tuple[Document, Document]:
        before = await get_object(api, ResourceArgs("shoot", (shoot,), is_namespaced=True), shoot, options.namespace)
        metadata = as_mapping(before.get("metadata"))
        body: dict[str, Any] = {
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "seed": seed,
            "resourceVersion": metadata.get("resourceVersion"),
        }
        if options.force:
            body["force"] = True
        return before, await api.call("bind", body)

    before, after = run_with_client(work, *landscape)
    if not printed(options.output, after, [qualified_name(after)]):
        show_lines([_bound(before, as_mapping(after), force=options.force)])


def _bound(before: Document, after: Document, *, force: bool) -> str:
    old, new = summarize_shoot(before), summarize_shoot(after)
    name = f"shoot {old.namespace}/{old.name}"
    if force:
        return f"{name} is restored on {new.seed}; {old.actual_seed or old.seed} is ignored from now on"
    if not old.seed:
        return f"{name} is bound to {new.seed}"
    if new.seed == old.actual_seed:
        return f"{name} stays on {new.seed}: the migration to {old.seed} is cancelled"
    return f"{name} moves from {old.actual_seed or old.seed} to {new.seed}"


def cordon(
    seeds: SeedNames = None, *, selector: Selector = "", output: Output = Format.TABLE, landscape: LandscapeOptions
) -> None:
    """Hide seeds from the scheduler: they take no new shoots, and keep those that they have.

    Sets spec.settings.scheduling.visible to false, and an annotation that keeps it so when its gardenlet starts anew.

    Example: gardenbus cordon aws-dublin aws-cork
    """
    _set_visible(seeds or [], selector, output, landscape, visible=False)


def uncordon(
    seeds: SeedNames = None, *, selector: Selector = "", output: Output = Format.TABLE, landscape: LandscapeOptions
) -> None:
    """Show seeds to the scheduler again.

    Example: gardenbus uncordon aws-dublin aws-cork
    """
    _set_visible(seeds or [], selector, output, landscape, visible=True)


def _set_visible(
    seeds: list[str], selector: str, output: Format, landscape: LandscapeOptions, *, visible: bool
) -> None:
    """Hide or show each of the seeds; one that is rejected keeps none of the others from it."""
    with exit_codes():
        if bool(seeds) == bool(selector):
            raise BadRequest(f"name the seeds: names or -l{', not both' if seeds else ''}")
        names = list(dict.fromkeys(object_name(seed, "seed") for seed in seeds))

    async def work(api: ApiClient) -> tuple[list[tuple[Document, bool]], bool]:
        chosen = names or [name_of(seed) for seed in await api.items("seed", {"labelSelector": selector})]
        if not chosen:
            errors.print("nothing has these labels")
        results: list[tuple[Document, bool]] = []
        for name in chosen:
            try:
                results.append(await set_visible(api, name, visible=visible))
            except ApiError as error:
                print_api_error(error.error)
        return results, len(results) == len(chosen)

    results, is_complete = run_with_client(work, *landscape)
    word = "uncordoned" if visible else "cordoned"
    if output in PROGRAMS:
        documents = [document for document, _ in results]
        is_one = len(names) == len(documents) == 1
        show_document(documents[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": documents}, output)
    elif output is Format.NAME:
        show_lines([qualified_name(document) for document, _ in results])
    else:
        for document, is_changed in results:
            show_lines([f"seed {name_of(document)} {word if is_changed else f'is {word} already'}"])
    fail_unless(is_complete)
