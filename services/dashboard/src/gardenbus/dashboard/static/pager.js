// Pages of a list: which part is shown, and buttons to the parts before and behind it. Nothing where all of it is shown.

import { h, setText } from "./dom.js";
import { count } from "./format.js";

export function pager(size, label, go) {
  const words = h("span", { role: "status" });
  const button = (sign, name, step) => h("button", { class: "button small", type: "button", "aria-label": `${name} ${label}`, onclick: () => go(first + step) }, sign);
  const before = button("‹", "Previous", -size);
  const behind = button("›", "Next", size);
  const element = h("div", { class: "pager", hidden: true }, words, before, behind);
  let first = 0;
  return {
    element,
    show(offset, shown, total) {
      first = offset;
      element.hidden = total <= size && !offset;
      before.disabled = offset === 0;
      behind.disabled = offset + shown >= total;
      setText(words, `${count(offset + 1)} to ${count(offset + shown)} of ${count(total)}`);
    },
  };
}
