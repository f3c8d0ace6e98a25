"""Registry of sessions: which logins have not ended, at every replica, and whose credentials were revoked since.

A session begins with an Event under its id and ends with another one there, which all replicas follow: a copied cookie
is worth nothing after its session was ended. What the registry does not know has ended, be it that the Event is gone,
but for a login that is younger than its Event may need. Revocations and budgets are followed in the same way. Where
the bus was silent for `SILENT_SECONDS` the registry cannot tell, and says so.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import partial

import msgspec
import structlog

from gardenbus.common.api.budgets import BUDGETS, Budget
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.revocations import REVOCATIONS, Revocations, read_revocations
from gardenbus.common.api.keys import GARDEN_NAMESPACE, Header, ObjectKey, Subjects
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import keep_following
from gardenbus.common.errors import GardenbusError, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus, Follower, FollowRestarted, ReplayDone, StreamMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.diagnostics.login_tokens import SESSION_LIFE

SILENT_SECONDS = 15.0
"""Time without a message or heartbeat after which no session can be told to hold."""

YOUNG = timedelta(seconds=15)
"""Age up to which a session holds whose Event has not arrived here: another replica let it in."""

WAIT_SECONDS = 5.0
"""Time that a request waits for the first replay."""

LOGGED_IN, LOGGED_OUT = "LoggedIn", "LoggedOut"

_log = structlog.stdlib.get_logger()


class _User(msgspec.Struct):
    name: str = ""


class _LoginEvent(msgspec.Struct):
    """An Event of a login, as far as it is read. Those of an older version name no user: their sessions have ended."""

    reason: str = ""
    related: _User = msgspec.field(default_factory=_User)
    firstTimestamp: datetime | None = None  # noqa: N815  Kubernetes' name


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


_decode_login = json_decoder(_LoginEvent)
_decode_document = json_decoder(dict[str, object])


class SessionRegistry:
    """Sessions by user and id; `run` keeps it current for ever."""

    def __init__(self, bus: Bus, subjects: Subjects, api: GardenApiClient, clock: Clock) -> None:
        self._bus = bus
        self._subjects = subjects
        self._api = api
        self._clock = clock
        self._sessions: dict[str, dict[str, datetime]] = {}
        self._ended: dict[str, datetime] = {}
        """Those that ended within `YOUNG`, and when."""
        self._revocations = Revocations()
        self.budgets = BudgetSettings()
        self._followers: dict[str, Follower] = {}
        self._replayed: dict[str, asyncio.Event] = {
            name: asyncio.Event() for name in ("logins", REVOCATIONS.name, BUDGETS.name)
        }

    async def run(self) -> None:
        """Follow logins, revocations and budgets."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_following("logins", self._follow_logins), name="follow logins")
            for key, read in ((REVOCATIONS, self._read_revocations), (BUDGETS, self.budgets.note)):
                tasks.create_task(keep_following(key.name, partial(self._follow, key, read)), name=f"follow {key.name}")

    @property
    def is_current(self) -> bool:
        """True while everything is followed, and heard of."""
        return all(event.is_set() for event in self._replayed.values()) and all(
            follower.silent_seconds < SILENT_SECONDS for follower in self._followers.values()
        )

    async def until_current(self) -> None:
        """Wait a little until sessions can be told to hold. Raises Unavailable."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                for event in self._replayed.values():
                    await event.wait()
        except TimeoutError:
            pass
        if not self.is_current:
            raise Unavailable("whether this session has ended is not known: the dashboard cannot reach NATS")

    def budget(self, user: str, projects: Collection[str] = ()) -> Budget:
        """Limits of a user."""
        return self.budgets.of(user, projects)

    def counts(self) -> Mapping[str, int]:
        """Sessions that have not ended, by user."""
        return {user: len(own) for user, own in self._sessions.items()}

    def holds(self, user: str, session_id: str, issued_at: datetime) -> bool:
        """True while a session has neither ended nor been revoked."""
        if session_id in self._ended or self.is_revoked(user, issued_at):
            return False
        is_live = session_id in self._sessions.get(user, ())
        return is_live or self._clock.now() - issued_at < YOUNG

    def is_revoked(self, user: str, issued_at: datetime) -> bool:
        """True when whatever a user was issued then is revoked."""
        return self._revocations.rejects(user, issued_at=issued_at)

    def begin(self, user: str, session_id: str, at: datetime) -> None:
        """Note a login; a user's oldest session ends when there are more than the budget has."""
        if session_id in self._ended:
            return
        now = self._clock.now()
        own = self._sessions.setdefault(user, {})
        own[session_id] = at
        for old in [each for each, began in own.items() if now - began >= SESSION_LIFE]:
            del own[old]
        while len(own) > self.budget(user).sessions:
            self._end(user, next(iter(own)), now)
        if not own:
            self._sessions.pop(user, None)

    def end(self, user: str, session_id: str) -> None:
        """Note that somebody has logged out."""
        self._end(user, session_id, self._clock.now())

    def _end(self, user: str, session_id: str, now: datetime) -> None:
        own = self._sessions.get(user, {})
        own.pop(session_id, None)
        if not own:
            self._sessions.pop(user, None)
        self._ended = {each: at for each, at in self._ended.items() if now - at < YOUNG} | {session_id: now}

    async def _follow_logins(self) -> None:
        subject = self._subjects.event(ObjectKey("login", GARDEN_NAMESPACE, "*"))
        stream = self._subjects.stream("EVENTS")
        async with self._bus.follow(stream, [subject], last_per_subject=True) as follower:
            self._followers["logins"] = follower
            self._sessions.clear()
            self._replayed["logins"].clear()
            async for event in follower:
                match event:
                    case ReplayDone():
                        self._replayed["logins"].set()
                    case FollowRestarted():
                        self._sessions.clear()
                        self._replayed["logins"].clear()
                    case StreamMessage() if event.marker is None:
                        with skip_unreadable(event):
                            self._take_login(event)
                    case StreamMessage():
                        pass

    def _take_login(self, event: StreamMessage) -> None:
        session_id = event.subject.rpartition(".")[2]
        login = _decode_login(event.body)
        user = login.related.name
        if login.reason == LOGGED_OUT:
            self.end(user, session_id)
        elif user:
            self.begin(user, session_id, login.firstTimestamp or event.at)

    async def _follow(self, key: ObjectKey, read: Callable[[Document | None], None]) -> None:
        stream, subject = self._subjects.stream("OBJECTS"), self._subjects.changed(key)
        async with self._bus.follow(stream, [subject], last_per_subject=True) as follower:
            self._followers[key.name] = follower
            self._replayed[key.name].clear()
            found = False
            async for event in follower:
                if isinstance(event, FollowRestarted):
                    found = False
                    self._replayed[key.name].clear()
                elif isinstance(event, ReplayDone):
                    if not found:
                        read(None)
                    self._replayed[key.name].set()
                else:
                    found = True
                    document = await self._document(key, event)
                    with skip_unreadable(event):
                        read(document)

    async def _document(self, key: ObjectKey, event: StreamMessage) -> Document | None:
        if event.marker is not None or event.headers.get(Header.VERB) == "deleted":
            return None
        try:
            return await self._api.get(key) if Header.TOO_LARGE in event.headers else _decode_document(event.body)
        except NotFound:
            return None
        except (GardenbusError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unavailable(f"{key} cannot be read: {error}") from error

    def _read_revocations(self, document: Document | None) -> None:
        try:
            lines: Mapping[str, str] = msgspec.convert(document or {}, _ConfigMap).data
        except msgspec.ValidationError as error:  # what was revoked stays revoked
            _log.warning("revocations.unreadable", object=str(REVOCATIONS), reason=str(error))
            return
        self._revocations = read_revocations(lines)
