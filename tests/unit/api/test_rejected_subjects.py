"""Where rejected messages are kept: by what came, and from whom."""

import pytest

from gardenbus.common.api.keys import Subjects

SUBJECTS = Subjects("garden")


@pytest.mark.parametrize(
    ("subject", "kept_on"),
    [
        ("garden.apply", "garden.rejected.apply.anybody"),
        ("garden.as.ann.delete", "garden.rejected.as.ann"),
        ("garden.report.earth-1.shoot.ns.a.b", "garden.rejected.report.earth-1"),
        ("garden.report.member:prod.work.ns.a", "garden.rejected.report.member:prod"),
        ("garden.queue.scheduling.mine.ns.a", "garden.rejected.queue.scheduling"),
    ],
)
def test_a_rejected_message_is_kept_by_its_sender(subject: str, kept_on: str) -> None:
    assert SUBJECTS.rejected(subject) == kept_on


@pytest.mark.parametrize("sender", ["*", ">", "a b", "ü" * 3, "x" * 5000, "\ud800"])
def test_a_sender_that_could_not_stand_in_a_subject_is_named_by_a_digest(sender: str) -> None:
    verb, token = SUBJECTS.rejected(f"garden.as.{sender}.apply").removeprefix("garden.rejected.").split(".")
    assert verb == "as"
    assert token.isalnum()
    assert len(token) == 16
