"""What was issued and what was revoked, as the informer says it, readable or not."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.identity.revocations import REVOCATIONS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.identity.watch.credentials_cache import CredentialsCache

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANNS = ObjectKey("secret", "garden", "anns")


def stored(key: ObjectKey, document: Document, **fields: Any) -> StoredObject:
    return StoredObject(key=key, parts=split(document), uid="u-1", version=1, generation=1, created_at="", **fields)


def credentials(label: str = "credentials", **data: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"labels": {"gardenbus.io/purpose": label}},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }


ANN = credentials(user="ann", expires="2026-03-02T00:00:00Z", sha256="ab")


def revocations(data: Any) -> StoredObject:
    return stored(REVOCATIONS, {"apiVersion": "v1", "kind": "ConfigMap", "data": data})


def test_what_was_issued_comes_in_until_its_secret_goes() -> None:
    cache = CredentialsCache(lambda: NOW)
    there = stored(ANNS, ANN)
    cache.changed(ANNS, None, there)
    assert [each.principal.user for each in cache.issued["ann"]] == ["ann"]
    cache.changed(ANNS, there, None)
    assert not cache.issued


@pytest.mark.parametrize(("days", "withdrawn"), [(0, ["ann"]), (1, [])])
def test_removing_what_had_ended_disconnects_nobody_who_came_in_by_others(days: int, withdrawn: list[str]) -> None:
    cache = CredentialsCache(lambda: NOW + timedelta(days=days))
    called: list[str] = []
    cache.on_withdrawn = called.extend
    there = stored(ANNS, ANN)
    cache.changed(ANNS, None, there)
    cache.changed(ANNS, there, None)
    assert called == withdrawn


def test_a_secret_that_is_deleted_lets_nobody_in_while_a_finalizer_holds_it() -> None:
    cache = CredentialsCache(lambda: NOW)
    there = stored(ANNS, ANN)
    cache.changed(ANNS, None, there)
    cache.changed(ANNS, there, stored(ANNS, ANN, deleting_at="2026-03-01T00:00:00Z"))
    assert not cache.issued


def test_a_secret_that_loses_its_label_or_its_sense_lets_nobody_in() -> None:
    for changed in (credentials(label="backup", user="ann"), credentials(user="ann", expires="soon")):
        cache = CredentialsCache(lambda: NOW)
        there = stored(ANNS, ANN)
        cache.changed(ANNS, None, there)
        cache.changed(ANNS, there, stored(ANNS, changed))
        assert not cache.issued


def test_revocations_that_cannot_be_read_leave_those_that_were() -> None:
    cache = CredentialsCache(lambda: NOW)
    cache.changed(REVOCATIONS, None, revocations({"ann": "left on 1 March"}))
    cache.changed(REVOCATIONS, None, revocations(["ann"]))
    assert cache.revoked.rejects("ann")
    cache.changed(REVOCATIONS, None, revocations({}))
    assert not cache.revoked.rejects("ann")
