"""`adopt`, `forget`: what runs on a seed, where the store neither has it nor remembers that it left."""

from typing import Annotated

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.client.resource_args import parse_resource
from gardenbus.cli.commands.options import DryRun, LandscapeOptions, is_dry_run, run_with_client
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.common.api.document import encode
from gardenbus.common.errors import BadRequest

ShootWords = Annotated[list[str], typer.Argument(help="shoot NAMESPACE/NAME", metavar="shoot NAMESPACE/NAME")]
Forgotten = Annotated[
    list[str],
    typer.Argument(help="shoot|managedseed|work NAMESPACE/NAME", metavar="shoot|managedseed|work NAMESPACE/NAME"),
]
HostSeed = Annotated[
    str, typer.Option("--seed", help="The seed that it runs on.", metavar="SEED", autocompletion=completions.seeds)
]


def adopt(words: ShootWords, *, seed: HostSeed, dry_run: DryRun = None, landscape: LandscapeOptions) -> None:
    """Store a shoot again that its seed runs and the store does not know, as its gardenlet has it.

    It keeps its uid, and nothing of it is built again. `gardenbus doctor` names such shoots.

    Example: gardenbus adopt shoot garden-dev/apollo --seed aws-cork
    """
    _send("adopt", words, seed, dry_run, landscape)


def forget(words: Forgotten, *, seed: HostSeed, dry_run: DryRun = None, landscape: LandscapeOptions) -> None:
    """Tear down what a seed runs and the store does not know: a shoot, a managedseed's gardenlet, or a work's objects.

    Rejected while it is stored there. Of a work the agent is named: --seed member:CLUSTER.

    Example: gardenbus forget shoot garden-dev/apollo --seed aws-cork
    """
    _send("forget", words, seed, dry_run, landscape)


def _send(verb: str, words: list[str], seed: str, dry_run: str | None, landscape: LandscapeOptions) -> None:
    with exit_codes():
        only_checks, wanted = is_dry_run(dry_run), parse_resource(words)
        names = [name.partition("/") for name in wanted.names]
        kinds = ("shoot",) if verb == "adopt" else ("shoot", "managedseed", "work")
        if wanted.kind not in kinds or not names or not all(name for _, _, name in names):
            raise BadRequest(f"gardenbus {verb} {'|'.join(kinds)} NAMESPACE/NAME --seed SEED")

    async def work(api: ApiClient) -> list[str]:
        done = {"adopt": "adopted from", "forget": "forgotten, and torn down on"}[verb]
        lines: list[str] = []
        for namespace, _, name in names:
            response = await api.request(
                f"{verb}.{wanted.kind}.{namespace}.{name}", encode({"seed": seed}), is_dry_run=only_checks
            )
            if not response.ok:
                raise api_error(response.error)
            lines.append(f"{wanted.kind} {namespace}/{name} {done} {seed}{' (server dry run)' if only_checks else ''}")
        return lines

    show_lines(run_with_client(work, *landscape))
