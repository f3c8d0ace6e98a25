"""Colours of the page: words can be read on their grounds in both themes (WCAG 2.2, level AA)."""

import re
from collections.abc import Mapping

import pytest

from gardenbus.dashboard.web.files import STATIC

LEAST_CONTRAST = 4.5
BACKGROUNDS = ("ground", "surface", "raised")
PAIRS = [
    *((text, ground) for text in ("text", "text-soft", "text-faint", "accent", "bad") for ground in BACKGROUNDS),
    *((tone, f"{tone}-soft") for tone in ("accent", "good", "busy", "warn", "wait", "bad")),
    ("text-soft", "sunken"),
    ("on-accent", "accent"),
]
COLOUR = re.compile(r"--(?P<name>[a-z-]+): light-dark\((?P<light>#[0-9a-f]{6}), (?P<dark>#[0-9a-f]{6})\)")


def colours(theme: str) -> Mapping[str, str]:
    return {match["name"]: match[theme] for match in COLOUR.finditer((STATIC / "tokens.css").read_text())}


def luminance(colour: str) -> float:
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_on_their_ground(theme: str):
    of = colours(theme)
    found = {pair: contrast(of[pair[0]], of[pair[1]]) for pair in PAIRS}
    assert {pair: round(value, 2) for pair, value in found.items() if value < LEAST_CONTRAST} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_meanings_have_one_colour(theme: str):
    of = colours(theme)
    meanings = ("good", "busy", "warn-fill", "wait", "bad", "taken")
    assert len({of[name] for name in meanings}) == len(meanings)


def test_black_on_white_is_the_largest_contrast():
    assert round(contrast("#000000", "#ffffff"), 2) == 21
