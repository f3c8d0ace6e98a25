"""The Secret with the credentials of a seed's backup bucket.

Source: Gardener's `gardenlet/controller/backupbucket`, whose bucket fails while its Secret is not there.
"""

from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey


class BackupSecret(NamedTuple):
    """A Secret, and the field of the Seed that names it."""

    key: ObjectKey
    field: str

    @property
    def problem(self) -> str:
        """Sentence for the condition of a seed whose Secret is missing."""
        return f"Secret {self.key.namespace}/{self.key.name}, which {self.field} names, is not there."


def backup_secret(seed: Document) -> BackupSecret | None:
    """The Secret that a Seed's backup names; None when it names none, or credentials of another kind.

    Earlier versions of Gardener know `secretRef` alone, and `credentialsRef` wins over it.
    """
    for field in ("credentialsRef", "secretRef"):
        reference = section(seed, "spec", "backup", field)
        name, namespace = reference.get("name"), reference.get("namespace") or GARDEN_NAMESPACE
        if reference:
            if (reference.get("kind") or "Secret") != "Secret" or not isinstance(name, str) or not name:
                return None
            return BackupSecret(ObjectKey("secret", str(namespace), name), f"spec.backup.{field}")
    return None
