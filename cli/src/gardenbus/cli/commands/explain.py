"""`explain`: why a shoot is where it is or waits; the same of seeds and placements; what admission makes of files."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import get_object, object_name, parse_resource
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, Output, run_with_client
from gardenbus.cli.explain import explanation
from gardenbus.cli.fleet.placement_state import PlacementArg, parse_placement_arg
from gardenbus.cli.manifests.files import as_mapping, title
from gardenbus.cli.output.console import Format, exit_codes, fail_unless, new_table, printed, show_lines, show_rows
from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest

_KINDS = ("shoot", "seed")
_APPLY = "apply"
_EXPLAINED = "one shoot, seed or placement is explained: NAME or NAMESPACE/NAME of a shoot, seed NAME, placement NAME"


def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            help="A shoot as NAME, shoot NAME or NAMESPACE/NAME; a seed as seed NAME; "
            "a placement as placement NAME, crp NAME or rp NAME; manifests as apply FILE.",
            metavar="SHOOT",
            autocompletion=completions.explained,
        ),
    ],
    *,
    namespace: Namespace = None,
    show_all: Annotated[bool, typer.Option("--all", help="Name every seed or cluster, also of hundreds.")] = False,
    seed: Annotated[
        str | None,
        typer.Option(help="Of a shoot: say why it is not on this seed.", autocompletion=completions.seeds),
    ] = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Explain where a shoot is, or why it is pending; also seeds, placements, and admission of files.

    Of a shoot: which seeds each rule removed and why, how the rest ranks, what is decided, when it is tried next and
    what would wake it; of a placed one also why it got its seed then, from what was recorded. Of a seed: every rule,
    and which of the shoots that wait it could take. Of a placement: which clusters were taken with which scores, why
    the others were not, what each binding waits for, and what would make the scheduler look again.
    Of files (or folders, or - for stdin) after `apply`: what each admission plug-in would change or reject if they were
    applied; nothing is written, and the exit code is 1 when something would be rejected.

    Example: gardenbus explain shoot apollo -n garden-dev
    Example: gardenbus explain shoot apollo -n garden-dev --seed aws-eu2
    Example: gardenbus explain seed aws-eu1
    Example: gardenbus explain placement web
    Example: gardenbus explain apply shoot.yaml
    """
    if words[0] == _APPLY and len(words) > 1:
        _explain_apply(words[1:], namespace, output, landscape=landscape)
        return
    with exit_codes():
        placement = parse_placement_arg(words)
        kind, name = _meant(words) if placement is None else ("", "")
    if placement is not None:
        _explain_placement(placement, namespace, output, landscape=landscape, show_all=show_all)
        return

    async def work(api: ApiClient) -> Document:
        if kind == "seed":
            return as_mapping(await api.call(f"explain-seed.{name}"))
        shoot = await get_object(api, parse_resource(["shoot", name]), name, namespace)
        metadata = as_mapping(shoot.get("metadata"))
        return as_mapping(await api.call(f"explain.shoot.{metadata.get('namespace')}.{metadata.get('name')}"))

    response = run_with_client(work, *landscape)
    if seed is not None:
        show_why_not_seed(response, object_name(seed, "seed"), output)
        return
    if printed(output, response, [str(response.get("seed") or "")]):
        return
    if kind == "seed":
        show_seed(response, show_all=show_all)
    else:
        show_shoot(response, datetime.now(UTC), show_all=show_all)


def _explain_apply(files: list[str], namespace: str | None, output: Format, *, landscape: LandscapeOptions) -> None:
    from gardenbus.cli.commands.explain_apply import explain_apply, explanations, manifests, show_explanations  # noqa: PLC0415  shoots are explained without it

    with exit_codes():
        documents = manifests([Path(each) for each in files], namespace)
    responses = run_with_client(lambda api: explain_apply(api, documents), *landscape)
    rejected = [title(each) for each, response in zip(documents, responses, strict=True) if not response.ok]
    if not printed(output, explanations(documents, responses), rejected):
        show_explanations(documents, responses)
    fail_unless(not rejected)


def _explain_placement(
    wanted: PlacementArg, namespace: str | None, output: Format, *, landscape: LandscapeOptions, show_all: bool
) -> None:
    from gardenbus.cli.commands.explain_placements import explain_placement, show_placement  # noqa: PLC0415  shoots are explained without it

    response = run_with_client(lambda api: explain_placement(api, wanted, namespace), *landscape)
    if not printed(output, response, [str(each["cluster"]) for each in response["decisions"] if each["selected"]]):
        show_placement(response, datetime.now(UTC), show_all=show_all)


def _meant(words: list[str]) -> tuple[str, str]:
    """Kind and name of `NAME`, `NAMESPACE/NAME`, `KIND NAME` or `KIND/NAME`; a name alone is a shoot's."""
    if len(words) == 1:
        kind, slash, name = words[0].partition("/")
        try:
            meant = parse_resource(words).kind if slash else ""
        except BadRequest:
            meant = ""
        if meant not in _KINDS and "." in kind:  # no namespace has a dot
            raise BadRequest(f"{words[0]!r}: {_EXPLAINED}")
        return (meant, name) if meant in _KINDS else ("shoot", words[0])
    wanted = parse_resource(words[:1])
    if len(words) > 2 or wanted.kind not in _KINDS:  # noqa: PLR2004  a kind and a name
        raise BadRequest(_EXPLAINED)
    return wanted.kind, words[1]


def show_shoot(response: Document, now: datetime, *, show_all: bool) -> None:
    """Print the explanation of a shoot."""
    show_lines([*explanation.headline(response)])
    considered = as_mapping(response.get("considered"))
    if not considered:
        show_lines([f"  {response.get('unanswered')}, so the seeds are not listed"])
        return
    recorded = as_mapping(response.get("recorded"))
    if response.get("seed"):
        _headed("THEN")
        lines = explanation.history(recorded, str(response["seed"])) if recorded else _UNRECORDED
        show_lines([f"  {line}" for line in lines])
    _headed(f"{'NOW: ' if response.get('seed') else ''}SEEDS LEFT (strategy {considered.get('strategy')})")
    _show_table(("LEFT", "AFTER RULE", "REMOVED", "WHY"), explanation.funnel(considered, show_all=show_all))
    columns = explanation.ranking_columns(considered)
    is_scored = bool(considered.get("scores"))
    ranked = list((explanation.scored_ranking if is_scored else explanation.ranking)(considered, show_all=show_all))
    if ranked:
        _headed("RANKING (scores of 0 to 100, by their weights)" if is_scored else "RANKING")
        _show_table(columns, ranked)
        notes = [*explanation.below_ranking(response, considered, show_all=show_all)]
        show_lines([f"  {line}" for line in (*notes, *explanation.below_scores(considered))])
    _headed("DECISION")
    show_lines([f"  {line}" for line in explanation.decision(response, considered, now)])


_UNRECORDED = ("nothing was recorded: it was bound by hand, or by a scheduler that records nothing",)


def show_why_not_seed(response: Document, seed: str, output: Format) -> None:
    """Print why a shoot is not on a seed, or that it would be."""
    considered = as_mapping(response.get("considered"))
    lines = list(explanation.about_seed(considered, seed)) if considered else [str(response.get("unanswered"))]
    if not printed(output, {"seed": seed, "reasons": lines}, [seed]):
        show_lines(lines)


def show_seed(response: Document, *, show_all: bool) -> None:
    """Print the explanation of a seed."""
    show_lines([explanation.seed_headline(response), ""])
    rules = [as_mapping(rule) for rule in response.get("rules") or ()]
    rows = [("yes" if rule.get("ok") else "NO", str(rule.get("rule")), str(rule.get("message"))) for rule in rules]
    _show_table(("OK", "RULE", "READ"), rows)
    show_lines(["", *explanation.schedulable_lines(response, show_all=show_all)])


def _headed(title: str) -> None:
    show_lines(["", title])


def _show_table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    table = new_table(*columns[:-1], folded=columns[-1])
    for row in rows:
        table.add_row(*map(Text, row))
    show_rows(table)
