"""What of a shoot must stay while a ManagedSeed stands on it. Source: Gardener's admission plugin ShootManagedSeed."""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.decide.facts import FactQuery, Facts, StandingQuery
from gardenbus.apiserver.decide.managed_seeds import has_nginx, has_vertical_autoscaler
from gardenbus.apiserver.decide.used_seeds import zones_of
from gardenbus.common.errors import FieldProblem, InvalidResource
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.managed_seeds import seed_template_of, zones_of_workers


def standing_needed(shoot: Document, old: Document | None) -> Sequence[FactQuery]:
    """The ManagedSeed on a shoot, asked only when something changes that it holds in place."""
    return (StandingQuery(key_of_shoot(shoot)),) if old is not None and _touches_a_seed(shoot, old) else ()


def admit_for_seed(shoot: Document, old: Document | None, facts: Facts) -> None:
    """Check a change of a shoot against the ManagedSeed on it. Raises InvalidResource."""
    if old is None:
        return
    managed_seed = facts.standing.get(key_of_shoot(shoot))
    if managed_seed is None or not _touches_a_seed(shoot, old):
        return
    name = section(managed_seed, "metadata").get("name")
    problems = [
        FieldProblem(field, f"{message} (the ManagedSeed {name} stands on this shoot)")
        for field, message in _problems(shoot, old, managed_seed)
    ]
    if problems:
        listed = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
        raise InvalidResource(f"{key_of_shoot(shoot)}: {listed}", tuple(problems))


def guards_for_seed(shoot: Document, old: Document | None, facts: Facts) -> Sequence[Guard]:
    """Such a change of a shoot that carries no ManagedSeed holds only while it carries none."""
    if old is None:
        return ()
    key = key_of_shoot(shoot)
    if key in facts.standing or not _touches_a_seed(shoot, old):
        return ()
    return (Guard("references", key.stored, f"{key}: a ManagedSeed was put on it meanwhile: apply it again"),)


def key_of_shoot(shoot: Document) -> ObjectKey:
    """The key of a Shoot's manifest."""
    metadata = section(shoot, "metadata")
    return ObjectKey("shoot", str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _touches_a_seed(shoot: Document, old: Document) -> bool:
    if key_of_shoot(shoot).namespace != GARDEN_NAMESPACE or shoot.get("spec") == old.get("spec"):
        return False
    return any(True for _ in _problems(shoot, old, None))


def _problems(shoot: Document, old: Document, managed_seed: Document | None) -> Iterator[tuple[str, str]]:
    """What a change does that a seed does not bear; without its ManagedSeed any zone may be the seed's."""
    if has_nginx(shoot) and not has_nginx(old):
        yield "spec.addons.nginxIngress.enabled", "must stay false, as a seed brings its own ingress"
    if has_vertical_autoscaler(old) and not has_vertical_autoscaler(shoot):
        yield "spec.kubernetes.verticalPodAutoscaler.enabled", "must stay true, as the seed relies on it"
    nodes, before = (section(one, "spec", "networking").get("nodes") for one in (shoot, old))
    if before and nodes != before:
        yield "spec.networking.nodes", f"{before} stays, as it is the seed's range too"
    kept, had = zones_of_workers(shoot), zones_of_workers(old)
    registered = zones_of(section(seed_template_of(managed_seed), "spec")) if managed_seed is not None else had
    if gone := [zone for zone in had if zone not in kept and zone in registered]:
        fix = "take it out of the zones of the ManagedSeed first"
        yield "spec.provider.workers", f"zone {', '.join(gone)} cannot be left, as the seed is registered in it: {fix}"
