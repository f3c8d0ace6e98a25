"""Which backups are kept, compared with a model that asks each backup on its own."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.backups.catalog import Backup, Catalog, catalog_of
from gardenbus.common.backups.retention import kept

NOW = datetime(2026, 11, 23, 15, 40, 0, tzinfo=UTC)


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Fulls and deltas of the last seven weeks, some with gaps; half of all within the last day."""
    ages = st.one_of(st.integers(0, 60), st.integers(0, 24 * 60), st.integers(0, 50 * 24 * 60))
    backups: list[Backup] = []
    version = 1000
    for minutes in sorted(draw(st.lists(ages, max_size=25)), reverse=True):
        is_full = draw(st.booleans())
        after = 0 if is_full else version + draw(st.sampled_from([0, 0, 0, 5]))
        version += 10
        backups.append(Backup(NOW - timedelta(minutes=minutes), is_full, after, version))
    return catalog_of(backups)


def is_kept(catalog: Catalog, backup: Backup) -> bool:
    """The rule of each backup alone, as the documentation says it."""
    chain = next((each for each in catalog.chains if backup in each.backups), None)
    if chain is None:
        return NOW - backup.taken_at < timedelta(hours=1)
    if chain == catalog.chains[-1] or any(NOW - each.taken_at < timedelta(hours=1) for each in chain.backups):
        return True
    if not backup.is_full:
        return False
    later = [each.full.taken_at for each in catalog.chains[catalog.chains.index(chain) + 1 :]]
    at = backup.taken_at
    days = (NOW.date() - at.date()).days
    if days == 0:
        return not any((each.date(), each.hour) == (at.date(), at.hour) for each in later)
    if days <= 7:
        return not any(each.date() == at.date() for each in later)
    week = (days - 8) // 7
    return week < 4 and not any(((NOW.date() - each.date()).days - 8) // 7 == week for each in later)


@given(catalogs())
def test_each_backup_is_kept_as_the_rule_for_it_says(catalog: Catalog) -> None:
    assert kept(catalog, NOW) == {each for each in catalog.backups if is_kept(catalog, each)}


@given(catalogs())
def test_a_delta_is_never_kept_without_what_it_goes_on_from(catalog: Catalog) -> None:
    stay = kept(catalog, NOW)
    for chain in catalog.chains:
        flags = [each in stay for each in chain.backups]
        assert flags == sorted(flags, reverse=True)


@given(catalogs())
def test_collecting_twice_removes_no_more(catalog: Catalog) -> None:
    stay = kept(catalog, NOW)
    assert kept(catalog_of(stay), NOW) == stay


def test_hourly_backups_of_two_months_leave_hours_days_and_weeks() -> None:
    fulls = [Backup(NOW - timedelta(hours=hours), True, 0, 10_000 - hours) for hours in range(24 * 60)]
    stay = sorted(kept(catalog_of(fulls), NOW), reverse=True)
    ages = [(NOW.date() - each.taken_at.date()).days for each in stay]
    assert ages == [*[0] * 16, *range(1, 8), 8, 15, 22, 29]


def test_the_latest_backup_stays_however_old_it_is() -> None:
    old = Backup(NOW - timedelta(days=400), True, 0, 5)
    assert kept(catalog_of([old]), NOW) == {old}
