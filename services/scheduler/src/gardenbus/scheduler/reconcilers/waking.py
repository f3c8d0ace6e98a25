"""Waiting shoots: when something was gained, as many are queued again as may find room."""

from collections.abc import Sequence

import msgspec
import structlog

from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store, WaitingClass
from gardenbus.scheduler.reconcilers.counters import Counters
from gardenbus.scheduler.reconcilers.timers import Timers
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.request import request_from_descriptor
from gardenbus.scheduling.vacancies import Vacancies

_log = structlog.stdlib.get_logger()

CATCH_UP_SECONDS = 1.0
"""How long to wait for the gain itself to be seen here; if it takes longer, look again after the same time."""

CLASSES_AT_ONCE = 200
"""Classes that are looked at before others have their turn."""

QUICK_SECONDS = 0.05
REST = 9
MOST_REST_SECONDS = 5.0
"""A look that took longer than `QUICK_SECONDS` is followed by a rest `REST` times as long, at most this: with very many
classes waking takes a tenth of the time, and gains that come meanwhile are looked at together."""

LOOK_AGAIN_SECONDS = 1.0
"""When some that may fit are left: those woken first must have taken their places by then."""


class WakingReconciler:
    """Settles the messages that say: something was gained, look who waits."""

    def __init__(  # noqa: PLR0913  the parts that a reconciler is put together from
        self,
        *,
        store: Store,
        queue: WorkQueue,
        current: CurrentLandscape,
        timers: Timers,
        clock: Clock,
        counters: Counters,
        scheduler_name: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queue = queue
        self._current = current
        self._timers = timers
        self._counters = counters
        self._scheduler_name = scheduler_name

    async def settle(self, works: Sequence[Work]) -> None:
        """Wake by the current state; the messages all say the same. Raises Transient when a server is away."""
        began = self._clock.monotonic()
        usage = await self._store.usage(self._current.usage_version)
        self._current.usage_told(usage)
        has_seen = await self._current.wait_for_objects(usage.gains.objects, CATCH_UP_SECONDS)
        is_left = await self.wake()
        if is_left or not has_seen:
            for subject in {work.message.subject for work in works}:
                await self._timers.set_in(subject, LOOK_AGAIN_SECONDS)
        await self._queue.ack_many(works)
        took = self._clock.monotonic() - began
        if took > QUICK_SECONDS:
            await self._clock.sleep(min(took * REST, MOST_REST_SECONDS))

    async def wake(self) -> bool:
        """Queue again what may fit; answer whether to look again soon, because some were left that may fit too."""
        is_left = False
        classes = [waiting for waiting in await self._store.waiting(self._scheduler_name) if waiting.unseen]
        for start in range(0, len(classes), CLASSES_AT_ONCE):
            is_left = await self._wake_some(classes[start : start + CLASSES_AT_ONCE]) or is_left
            await self._clock.sleep(0)  # others have their turn
        return is_left

    async def _wake_some(self, classes: Sequence[WaitingClass]) -> bool:
        vacancies = Vacancies(self._current.snapshot())
        wanted = [(waiting, places) for waiting in classes if (places := self._places(waiting, vacancies))]
        is_left = False
        for waiting, places in wanted:
            woken = await self._store.wake(self._scheduler_name, waiting.waiting_class, places)
            is_left = is_left or woken < waiting.unseen
            self._counters.woken.inc(woken)
            _log.info(
                "shoots.woken", waiting_class=waiting.waiting_class, woken=woken, unseen=waiting.unseen, places=places
            )
        return is_left

    def _places(self, waiting: WaitingClass, vacancies: Vacancies) -> int:
        """How many of a class to wake at most: a free place for each, all when there is no limit or no telling."""
        try:
            places = vacancies.places(request_from_descriptor(waiting.descriptor))
        except Exception as error:  # noqa: BLE001  a user's filter, or a descriptor of another version
            if not isinstance(error, msgspec.ValidationError):
                _log.exception("decision.failed", waiting_class=waiting.waiting_class)
                self._counters.exceptions.inc()
            return waiting.unseen
        return waiting.unseen if places is None else min(places, waiting.unseen)
