"""A rehearsed write is refused as the write would be, and never carried out."""

from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, Conflict, Forbidden, NotFound
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest

NEW = ObjectKey("shoot", "garden-dev", "new")


async def test_what_would_be_taken_is_not_written(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.fresh_entries()
    await kit.store.dry_run(NEW, None, a_shoot("new"))
    await kit.store.dry_run(shoot.key, shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}))
    await kit.store.dry_run(shoot.key, shoot, None)
    assert not await kit.entries()
    assert await kit.now(shoot.key) == shoot
    assert await kit.store.get(NEW) is None


async def test_whatever_refuses_a_write_refuses_its_rehearsal(kit: StoreUnderTest) -> None:
    profile, _, seed = [await kit.created(each) for each in (a_cloudprofile(), a_project(), a_seed(shoots=1))]
    shoot = await kit.created(a_shoot())
    assert await kit.bound(shoot, seed.key.name) == "bound"
    bound = await kit.now(shoot.key)
    in_use: Any = [WritePrecondition("references", profile.key.stored, "it is in use")]
    rejected: list[tuple[type[Exception], Any]] = [
        (AlreadyExists, kit.store.dry_run(shoot.key, None, a_shoot())),
        (Conflict, kit.store.dry_run(shoot.key, shoot, shoot.document())),
        (NotFound, kit.store.dry_run(NEW, shoot, a_shoot("new"))),
        (Forbidden, kit.store.dry_run(profile.key, profile, None, preconditions=in_use)),
        (
            Forbidden,
            kit.store.dry_run(
                NEW,
                None,
                a_shoot("new", spec={"seedName": seed.key.name}),
                scheduling_generation=seed.scheduling_generation,
            ),
        ),
        (Forbidden, kit.store.dry_run(ObjectKey("project", "", "b"), None, a_project("b", "garden-dev"))),
    ]
    for error, rehearsal in rejected:
        with pytest.raises(error):
            await rehearsal
    assert await kit.now(shoot.key) == bound
