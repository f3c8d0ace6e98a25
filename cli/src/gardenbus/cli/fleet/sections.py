"""Tables of `describe` for statuses that are long as YAML: clusters, manifests, agents. Pure."""

from collections.abc import Iterator
from datetime import datetime

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import age_of, entries_at
from gardenbus.cli.output.printers import table_text
from gardenbus.common.api.document import Document

SHOWN_AS_TABLES = frozenset({"placementStatuses", "manifestConditions", "agentStatus"})
"""Fields of a status that are shown here."""

NO_CLUSTER = "<missing>"


def fleet_sections(status: Document, now: datetime) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each table, as far as there is something in it."""
    tables = (
        ("Clusters", ["CLUSTER", "RESOURCES", "STANDS AT", "MESSAGE"], list(_clusters(status))),
        ("Manifests", ["MANIFEST", "STANDS AT", "MESSAGE"], list(_manifests(status))),
        ("Agents", ["AGENT", "LAST SEEN", "STANDS AT", "MESSAGE"], list(_agents(status, now))),
    )
    for title, columns, rows in tables:
        if rows:
            yield title, table_text(columns, rows).splitlines()


def _clusters(status: Document) -> Iterator[list[str]]:
    for each in entries_at(status, "placementStatuses"):
        cluster, index = each.get("clusterName"), each.get("observedResourceIndex")
        yield [str(cluster or NO_CLUSTER), str(index or ""), *_stands_at(each)]


def _manifests(status: Document) -> Iterator[list[str]]:
    for each in entries_at(status, "manifestConditions"):
        identifier = as_mapping(each.get("identifier"))
        namespace = identifier.get("namespace")
        name = f"{f'{namespace}/' if namespace else ''}{identifier.get('name')}"
        yield [f"{identifier.get('kind')} {name}", *_stands_at(each)]


def _agents(status: Document, now: datetime) -> Iterator[list[str]]:
    for each in entries_at(status, "agentStatus"):
        yield [str(each.get("type")), age_of(each.get("lastReceivedHeartbeat"), now), *_stands_at(each)]


def _stands_at(entry: Document) -> list[str]:
    """The first condition that is not True with its message, or the last one."""
    conditions = entries_at(entry, "conditions")
    if not conditions:
        return ["nothing reported yet", ""]
    decisive = next((each for each in conditions if each.get("status") != "True"), None)
    if decisive is None:
        return [f"{conditions[-1].get('type')} True", ""]
    message = str(decisive.get("message") or decisive.get("reason") or "")
    return [f"{decisive.get('type')} {decisive.get('status')}", " ".join(message.split())]
