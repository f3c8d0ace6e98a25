"""Calls of the apiserver's handlers, without a message and an authorizer."""

from gardenbus.apiserver.access.authorizer import AccessGrant
from gardenbus.apiserver.call import Call, RequestOptions
from gardenbus.apiserver.domain.authorization.actions import UNLIMITED, Action, Requester
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.common.api.verbs import VERBS
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore


def a_call(verb: str, tail: str = "", body: bytes = b"", user: str = "", *, is_operator: bool = True) -> Call:
    """A call of a verb that is authorized."""
    requester = Requester(user)
    store = MemoryStore(FakeClock())
    return Call(
        VERBS[verb],
        tail,
        body,
        RequestOptions(requester, None),
        AccessGrant(requester, Action(verb), UNLIMITED, None),
        ReadCache(store, ManifestCache(store)),
        is_operator,
    )
