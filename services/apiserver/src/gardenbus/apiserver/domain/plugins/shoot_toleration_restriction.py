"""ShootTolerationRestriction: default tolerations and whitelists, of a configuration and of a project.

Facts: the Project of the shoot's namespace, and its exposure class, whose tolerations need no whitelist. Source:
`plugin/pkg/shoot/tolerationrestriction`; the note of what is unchecked where there is no Project yet is ours.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.admission_defaults import with_tolerations
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.plugins.shoot_exposure_class import exposure_class_of, exposure_class_queries
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.tolerations import (
    DISALLOWED,
    admit_tolerations,
    needs_project,
    unchecked_warnings,
    with_unchecked_note,
)
from gardenbus.common.api.configuration.admission import TolerationLists
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, namespace_of
from gardenbus.common.api.garden.tolerations import toleration_pairs


def _queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    project = (ProjectQuery(namespace_of(shoot)),) if needs_project(shoot, old) else ()
    return (*project, *exposure_class_queries(shoot, old))


def _warn(shoot: Document, _change: Change, _related: RelatedObjects) -> Sequence[str]:
    return unchecked_warnings(shoot)


def plugin(lists: TolerationLists) -> AdmissionPlugin:
    """The plug-in with the lists of a configuration, which count besides those of the projects."""
    everywhere = toleration_pairs([*lists.defaults, *lists.whitelist])

    def mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
        project, spec = related.projects.get(namespace_of(shoot)), section(shoot, "spec")
        of_project = mappings(section(project or {}, "spec", "tolerations").get("defaults"))
        named = {toleration["key"] for toleration in lists.defaults}
        given = [*lists.defaults, *(one for one in of_project if one.get("key") not in named)]
        if not given or not spec:
            return shoot
        with_defaults = with_tolerations(spec, None if change.old is None else section(change.old, "spec"), given)
        return shoot if with_defaults is spec else {**shoot, "spec": with_defaults}

    def admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
        project = related.projects.get(namespace_of(shoot))
        if project is not None:
            before = None if change.old is None else section(change.old, "spec")
            exposure_class = exposure_class_of(shoot, related)
            admit_tolerations(section(shoot, "spec"), before, project, exposure_class, everywhere)

    return AdmissionPlugin(
        name="ShootTolerationRestriction",
        acts=(
            "adds default tolerations of its configuration and of a project; rejects those that neither their"
            " whitelists nor the exposure class allow"
        ),
        rejections=(DISALLOWED,),
        rules=(AdmissionRule(("Shoot",), queries=_queries, mutate=mutate, admit=admit),),
    )


def notes(lists: TolerationLists) -> AdmissionPlugin:
    """The plug-in of unchecked tolerations, of which those on the lists of a configuration are none."""
    everywhere = toleration_pairs([*lists.defaults, *lists.whitelist])

    def mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
        project = related.projects.get(namespace_of(shoot))
        return with_unchecked_note(shoot, change.old, project, exposure_class_of(shoot, related), everywhere)

    return AdmissionPlugin(
        name="UncheckedTolerations",
        acts="notes on a shoot whose namespace has no project yet which of its tolerations are unchecked",
        rules=(AdmissionRule(("Shoot",), mutate=mutate, warn=_warn),),
    )


PLUGIN = plugin(TolerationLists())
NOTES = notes(TolerationLists())
