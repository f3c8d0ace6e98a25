// An address at which there is no page.

import { empty, h } from "../dom.js";

export const unknownPage = (pages) => (main, { address }) => main.append(h("h1", { class: "unseen" }, "Not found"), h("div", { class: "card" }, empty("search", "There is no page at this address", h("p", null, h("code", null, `#/${address}`)),
  h("ul", { class: "ways" }, pages.map((page) => h("li", null, h("a", { class: "button", href: `#/${page.path}` }, page.name)))))));
