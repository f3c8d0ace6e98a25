"""Messages of rejections: the sentences with which admission plug-ins reject something, each stated once.

A plug-in declares those that it may give (`AdmissionPlugin.rejections`); the reference page of the plug-ins lists them,
and what is raised is made of them. A message that is made in another way is found by a test.
"""

from functools import lru_cache
from typing import NamedTuple

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import WritePrecondition


class RejectionMessage(NamedTuple):
    """A sentence; each `{…}` is replaced by a value."""

    sentence: str

    def __call__(self, **values: object) -> str:
        """The sentence with its values."""
        return self.sentence.format_map(values)


NOT_THERE = RejectionMessage("{object} not found: apply it first")
CHANGED_MEANWHILE = RejectionMessage("{object} changed meanwhile")
"""No rejection for good: whoever applies it again meets the object as it is now."""
IN_USE = RejectionMessage("{object}: it is in use")
SAME_SEED = RejectionMessage("metadata.name: {object} is there, and both would be the seed {seed}: take another name")


@lru_cache(maxsize=4096)
def unchanged(key: ObjectKey, version: int) -> WritePrecondition:
    """The condition of a write that an object, which was read for it, still has its version (0: is not there)."""
    return WritePrecondition("version", key.stored, CHANGED_MEANWHILE(object=key), version=version)
