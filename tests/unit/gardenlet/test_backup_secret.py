"""The Secret that a Seed's backup names."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.domain.backup_secret import BackupSecret, backup_secret
from tests.support.builders import a_seed

NAMED = {"name": "backup", "namespace": "other"}
KEY = ObjectKey("secret", "other", "backup")


@pytest.mark.parametrize(
    ("backup", "expected"),
    [
        (None, None),
        ({"provider": "aws"}, None),
        ({"credentialsRef": {}}, None),
        ({"secretRef": NAMED}, BackupSecret(KEY, "spec.backup.secretRef")),
        ({"credentialsRef": NAMED}, BackupSecret(KEY, "spec.backup.credentialsRef")),
        (
            {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", **NAMED}},
            BackupSecret(KEY, "spec.backup.credentialsRef"),
        ),
        ({"credentialsRef": NAMED, "secretRef": {"name": "old"}}, BackupSecret(KEY, "spec.backup.credentialsRef")),
        ({"credentialsRef": {"kind": "WorkloadIdentity", **NAMED}, "secretRef": NAMED}, None),
        (
            {"secretRef": {"name": "backup"}},
            BackupSecret(ObjectKey("secret", "garden", "backup"), "spec.backup.secretRef"),
        ),
    ],
)
def test_it_is_the_one_of_the_credentials_or_of_earlier_versions(
    backup: Document | None, expected: BackupSecret | None
) -> None:
    assert backup_secret(a_seed(spec={"backup": backup})) == expected
