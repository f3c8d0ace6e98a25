// The keyboard: / searches, ? tells the keys, g and a letter goes to a page, j and k move in a list.

const TYPING = "input, select, textarea, [contenteditable]";

export function installKeys({ pages, switchTheme, openKeys, openSearch }) {
  let isGoing = 0;
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      openSearch();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPING) || document.querySelector("dialog[open]")) return;
    const page = Date.now() < isGoing && pages.find((each) => each.key === event.key);
    isGoing = 0;
    if (page) location.hash = `#/${page.path}`;
    else if (event.key === "g") isGoing = Date.now() + 1200;
    else if (event.key === "/") openSearch();
    else if (event.key === "?") openKeys();
    else if (event.key === "t") switchTheme();
    else if (event.key === "f") document.querySelector("main .filters input")?.focus();
    else if (event.key === "Escape" || event.key === "u") history.length > 1 && /^#\/(object|placement)\//.test(location.hash) && history.back();
    else if ("jk".includes(event.key) || event.key === "ArrowDown" || event.key === "ArrowUp") return move(event);
    else return;
    event.preventDefault();
  });
}

// Lists of links are walked through; the virtual table takes its keys itself once it has the focus.
function move(event) {
  const grid = document.querySelector("main .grid-scroll");
  if (grid) {
    if (document.activeElement !== grid) {
      grid.focus();
      grid.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
      event.preventDefault();
    }
    return;
  }
  if (event.key.startsWith("Arrow")) return;
  const links = [...document.querySelectorAll("main [data-walk]")];
  const at = links.indexOf(document.activeElement);
  const next = links[at + (event.key === "j" ? 1 : -1)] ?? (at < 0 ? links[0] : null);
  next?.focus();
  event.preventDefault();
}
