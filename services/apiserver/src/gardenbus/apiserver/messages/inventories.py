"""Takes the inventories by which gardenlets answer a recovery of the store: all that their seeds run, with uids."""

import msgspec
import structlog

from gardenbus.apiserver.access.report_authorization import own_seed
from gardenbus.apiserver.domain.report_messages import Report
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.ports.recovery import InventoryItem
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

INVENTORIED_KINDS = ("shoot", "managedseed")


class _Item(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str
    uid: str


class _Inventory(msgspec.Struct, frozen=True):
    items: tuple[_Item, ...]


async def take_inventory(report: Report, store: Store) -> None:
    """Keep as unknown what the store has lost of it. Raises BadRequest, Forbidden, Unavailable."""
    if report.key != own_seed(report):
        raise Forbidden(f"the inventory of seed {report.seed} is a report about that Seed")
    try:
        items = msgspec.convert(report.body, _Inventory).items
    except msgspec.ValidationError as error:
        raise BadRequest(f"an inventory is items, each with kind, namespace, name and uid: {error}") from error
    wrong = next((each.kind for each in items if each.kind not in INVENTORIED_KINDS), None)
    if wrong is not None:
        raise BadRequest(f"items.kind: {wrong[:40]!r} is none of {', '.join(INVENTORIED_KINDS)}")
    found = [InventoryItem(ObjectKey(each.kind, each.namespace, each.name), each.uid) for each in items]
    result = await store.take_inventory(report.seed, report.recovery_id, found)
    if result.is_current:
        log = _log.warning if result.unknown else _log.info
        log("inventory.taken", seed=report.seed, items=len(found), unknown=result.unknown, unnamed=result.unnamed)
