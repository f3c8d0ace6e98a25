"""Short words for a shoot that no seed takes, for lists; the whole of it is with `explain` and `describe`. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

_PREFIX = "Failed to schedule Shoot: "
_LISTED = re.compile(r"0/(?P<seeds>\d{1,9}) seeds are eligible: \{(?P<reasons>.*)\}", re.DOTALL)
_NAMED = re.compile(r"(?:^|, )(?:(?P<count>\d{1,9}) seeds \([^()]*, …\)|[a-z0-9][a-z0-9.-]*) => ")
_NONE_LEFT = re.compile(r"^(?:none of the \d+ (?:remaining )?seeds|not even the one seed)(?: left)?\b")
"""Subject of a reason for which no seed is left, also as earlier versions have stored it."""
_STATES = re.compile(r"^(no seed is schedulable): .*")
_ONE_LACKS = re.compile(r"^the remaining seed lacks\b")
_MORE = re.compile(r", \d+ more reasons$")
_BRIEF: Mapping[str, str] = {
    "invalid networks": "with overlapping networks",
    "the shoot does not tolerate the seed's taints": "with taints that it does not tolerate",
    "seed has no capacity left for shoots": "full",
}
"""Beginning of a reason → words for the seeds that have it."""


def full_reason(message: str) -> str:
    """All that a rejection says, without the words that each begins with."""
    return message.removeprefix(_PREFIX)


def brief_reason(message: str) -> str:
    """`0/3 seeds: 2 with overlapping networks, 1 full`, of one that names seeds; others without their beginning.

    What a filter of one's own says is kept up to the first colon or parenthesis.
    """
    text, _, hosted = full_reason(message).partition("; left out: {")
    left_out = f"; left out: {hosted.count(' => ')} that it hosts" if hosted else ""
    counts = _counted(text)
    if not counts:
        return f"{text}{left_out}"
    listed = ", ".join(f"{seeds} {reason}" for reason, seeds in counts.most_common())
    return f"0/{counts.total()} seeds: {listed}{left_out}"


def cause_of(message: str) -> str:
    """`full, with overlapping networks`: the brief reason without numbers, the same while seeds come and go."""
    text = full_reason(message).partition("; left out: {")[0]
    text_of_all = _STATES.sub(r"\1", _NONE_LEFT.sub("no seed", text))
    return ", ".join(sorted(_counted(text))) or _ONE_LACKS.sub("no seed has", text_of_all)


def _counted(text: str) -> Counter[str]:
    """Seeds by their brief reason; none of a text that lists no seeds."""
    found = _LISTED.fullmatch(text)
    counts: Counter[str] = Counter()
    if found is None:
        return counts
    for seeds, reason in _reasons(found["reasons"]):
        counts[reason_in_brief(reason)] += seeds
    if other := int(found["seeds"]) - counts.total():
        counts["for other reasons"] = other
    return counts


def _reasons(text: str) -> Iterator[tuple[int, str]]:
    """Numbers of seeds with their reasons, of `a => reason, b => reason` and of `9 seeds (a, …) => reason`."""
    beginnings = list(_NAMED.finditer(text))
    for number, beginning in enumerate(beginnings):
        end = beginnings[number + 1].start() if number + 1 < len(beginnings) else len(text)
        yield int(beginning["count"] or 1), _MORE.sub("", text[beginning.end() : end])


def reason_in_brief(reason: str) -> str:
    """`with overlapping networks`, of one seed's reason: the same for all seeds that have it for their own ranges."""
    matching = (short for beginning, short in _BRIEF.items() if reason.startswith(beginning))
    return next(matching, None) or re.split(r": | \(", reason, maxsplit=1)[0]
