"""The loop of stale projects against a model that looks at each day for itself."""

from datetime import datetime, timedelta
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.configuration.controller_manager import ProjectControllerConfiguration
from gardenbus.controllermanager.domain.stale_projects import ProjectUse, Staleness, assess

CREATED = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
DAY = timedelta(days=1)

Event = Literal["nothing", "used", "unused", "activity", "exempt", "not exempt"]

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(("nothing", "used", "unused", "activity", "exempt", "not exempt")),
    ),
    max_size=25,
)
CONFIGURATIONS = st.builds(
    ProjectControllerConfiguration,
    minimum_lifetime_days=st.integers(0, 40),
    stale_grace_period_days=st.integers(0, 30),
    stale_expiration_time_days=st.integers(0, 120),
)


def naive_end(quiet_days: list[bool], configuration: ProjectControllerConfiguration) -> int | None:
    """The day of the deletion: the first at which it was quiet for as long as it takes, by counting days."""
    quiet_for = -1
    for day, is_quiet in enumerate(quiet_days):
        quiet_for = quiet_for + 1 if is_quiet else -1
        enough = max(configuration.stale_grace_period_days, configuration.stale_expiration_time_days)
        if is_quiet and quiet_for >= enough:
            return day
    return None


@settings(max_examples=300, deadline=None)
@given(events=EVENTS, configuration=CONFIGURATIONS)
def test_a_project_is_deleted_exactly_when_counting_days_says_so(
    events: list[tuple[int, Event]], configuration: ProjectControllerConfiguration
) -> None:
    day, last_active, used, exempt = 0, None, False, False
    stale, deleted_on = Staleness(), None
    quiet_days: list[bool] = []
    for days, event in [*events, (200, "nothing")]:
        for _ in range(days):
            now = CREATED + day * DAY
            last = None if last_active is None else CREATED + last_active * DAY
            use = ProjectUse(CREATED, last, is_exempt=exempt, is_used=used)
            before = stale
            stale = assess(use, before, now, configuration)
            if deleted_on is None and stale.is_over(now):
                deleted_on = day
            lifetime = configuration.minimum_lifetime_days
            is_old = day >= lifetime and (last_active is None or day - last_active >= lifetime)
            quiet_days.append(is_old and not used and not exempt)
            assert (stale.since is not None) is quiet_days[-1]
            if before.deleted_at is not None and stale.deleted_at is not None:
                assert stale.deleted_at >= before.deleted_at
            day += 1
        match event:
            case "used" | "unused":
                used = event == "used"
            case "exempt" | "not exempt":
                exempt = event == "exempt"
            case "activity":
                last_active = day
            case _:
                pass
    assert deleted_on == naive_end(quiet_days, configuration)


@given(
    grace=st.integers(0, 30),
    expirations=st.lists(st.integers(0, 200), min_size=1, max_size=20),
)
def test_however_the_configuration_changes_an_end_is_never_brought_forward(grace: int, expirations: list[int]) -> None:
    stale, use = Staleness(), ProjectUse(CREATED, None, is_exempt=False, is_used=False)
    for day, expiration in enumerate(expirations):
        configuration = ProjectControllerConfiguration(
            minimum_lifetime_days=0, stale_grace_period_days=grace, stale_expiration_time_days=expiration
        )
        before, stale = stale, assess(use, stale, CREATED + day * DAY, configuration)
        if before.deleted_at is not None:
            assert stale.deleted_at is not None
            assert stale.deleted_at >= before.deleted_at
