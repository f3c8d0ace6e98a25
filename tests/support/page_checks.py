"""Faults that any page of the dashboard may have, as scripts that list them."""

NAMELESS = """[...document.querySelectorAll('a[href], button, input, select')]
.filter((each) => each.offsetParent && !each.textContent.trim())
.filter((each) => !each.getAttribute('aria-label') && !each.title).map((each) => each.outerHTML)"""
"""What can be pressed and has no name."""

CUT_OFF = """() => [...document.querySelectorAll('main :is(td, th, select, input, a, button)')].filter((each) => {
  const { right, width } = each.getBoundingClientRect();
  return width > 1 && right > innerWidth && !each.closest('thead');
}).map((each) => `${each.tagName} ${each.textContent}`)"""
"""What of a page cannot be seen without scrolling sideways."""

FOCUSED = """() => {
  const { activeElement: focused } = document, { left, top, width, height } = focused.getBoundingClientRect();
  const hit = document.elementFromPoint(left + width / 2, top + height / 2);
  const name = `${focused.tagName} ${focused.getAttribute('aria-label') ?? focused.textContent}`;
  const { outlineStyle, outlineWidth } = getComputedStyle(focused);
  const hasRing = outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2;
  return { name, isEnd: focused === document.body, isSeen: focused.contains(hit), hasRing };
}"""
"""What the keyboard is at: whether nothing lies over it, and whether it has a ring."""
