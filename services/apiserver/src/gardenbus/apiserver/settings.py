"""Settings of the apiserver."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from gardenbus.common.api.configuration.admission import AdmissionConfiguration, parse_configuration
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings

USAGE = "usage: python -m gardenbus.apiserver [--config FILE] (an AdmissionConfiguration)"

Count = Annotated[int, msgspec.Meta(ge=1)]


class ApiserverSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the apiserver beyond the common ones."""

    configuration: AdmissionConfiguration = AdmissionConfiguration()
    """The configuration file's content; without one each admission plug-in is as it is by default."""

    authorization: Literal["auto", "enforce", "off"] = "auto"
    """`enforce`: requests are authorized by user; `off`: everybody may do everything. `auto` enforces where the
    apiserver itself has credentials: without them nobody has any, and a user is what a subject says."""

    static_users: str = ""
    """File that says whose an nkey of the server's configuration is, as `gardenbus identity export` writes it, where
    there is no auth callout; read anew when it changes."""

    request_batch: Count = 200
    """Durable requests fetched at once: many share reads and acknowledgements, and a batch is finished long before the
    10 s after which the bus redelivers it."""

    report_batch: Count = 300
    """Reports fetched at once; they are smaller than requests, and those of one object become one write."""

    batch_bytes: Annotated[int, msgspec.Meta(ge=65_536)] = 1_572_864
    """Bytes of the durable requests, or of the reports, fetched at once, unless one message is larger: two batches of
    each are in memory, and what was parsed takes a multiple. More than 200 usual requests have."""

    write_concurrency: Count = 200
    """Objects written concurrently by each batch consumer: as many as a batch has, so that the store works on some (up
    to 50 in one call) while others are admitted."""

    answer_concurrency: Annotated[int, msgspec.Meta(ge=1, le=64)] = 12
    """API requests handled concurrently; further ones wait. Enough to hide the round trips, few enough that lists
    of large objects do not pile up in memory."""

    fetch_wait_seconds: Annotated[float, msgspec.Meta(gt=0, le=30)] = 1.0
    """Longest wait of a fetch for a first message, and of a stop for an idle batch consumer."""

    groups: str = ""
    """More API groups whose objects are stored, as `example.com,example.org`: nothing acts on them, but placements can
    carry them to member clusters."""

    deliveries_max: Count = 5
    """Deliveries after which a message is put on `garden.rejected.<verb>.<sender>`: enough for a replica to be killed a
    few times for other reasons, few enough that a poison message does not keep all replicas down for long."""

    @property
    def enforces_authorization(self) -> bool:
        """True when requests are authorized."""
        return self.authorization == "enforce" or (self.authorization == "auto" and bool(self.nats_credentials))


load_settings = partial(load_configured, ApiserverSettings, parse_configuration, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
