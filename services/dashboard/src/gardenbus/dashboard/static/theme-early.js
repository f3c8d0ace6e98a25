// Before anything is drawn: the theme that was chosen last time.
"use strict";
try {
  const chosen = localStorage.getItem("gardenbus-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is switched off: the system's theme it is
}
