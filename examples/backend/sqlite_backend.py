"""A backend in 40 lines: a shoot is an SQLite database that has its spec."""

import json
import sqlite3
from contextlib import closing
from uuid import uuid4

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.backend.directory_maker import DirectoryMaker
from gardenbus.gardenlet.backend.port import Kept, StepRequest
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import technical_id


class SqliteMaker(DirectoryMaker):
    """Each step may be cut, and comes again: it makes what is missing and removes what is there."""

    async def make(self, request: StepRequest) -> Document:
        """The database is made by step `etcd`; what a step returns lasts, and moves with the shoot."""
        file = self.directory / f"{technical_id(*request.shoot)}.sqlite"
        with self.owned():  # not after another gardenlet has acquired the seed
            if request.step == "etcd":
                with closing(sqlite3.connect(file)) as database:
                    database.execute("CREATE TABLE IF NOT EXISTS shoot (spec TEXT)")
                return {"volume": request.kept.get("etcd", {}).get("volume") or uuid4().hex}
            if request.step == "control-plane" and request.observed is not None:
                with closing(sqlite3.connect(file)) as database, database:
                    database.execute("DELETE FROM shoot")
                    database.execute("INSERT INTO shoot VALUES (?)", [json.dumps(request.observed.spec)])
            if request.step in ("delete-etcd", "release-etcd"):
                file.unlink(missing_ok=True)
        return {}

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems of a shoot, by condition."""
        file = self.directory / f"{technical_id(*observed.full_name)}.sqlite"
        return {} if file.exists() else {"ControlPlaneHealthy": "Its database is gone."}
