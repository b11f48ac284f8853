// Keys: pages, commands, and the rows of lists.

import { shortcuts } from "/console/dialog.js";

const ROWS = "main :is(tbody tr, ol.findings > li, ol.marks > li)";
const TARGETS = "a[href], button:not(:disabled), input:not(:disabled)";
const TYPING = "select, textarea, dialog, input:not([type=checkbox], [type=radio])";
const STEPS = { j: 1, k: -1 };
// These scroll the page, unless one is in a list.
const ARROWS = { ArrowDown: 1, ArrowUp: -1 };

/** Give the focus to what is first in the next row of the lists, or in the one before. Returns whether there is a row. */
function move(step) {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  const row = rows[next];
  if (!row) return false;
  const target = [...row.querySelectorAll(TARGETS)].find((one) => one.checkVisibility()) ?? row;
  if (target === row) row.tabIndex = -1;
  target.focus();
  row.scrollIntoView({ block: "nearest" });
  return true;
}

/** `pages`: names, titles and keys; `commands`: functions by their keys; `find()`: opens the search for everything; `ready()`: whether one is logged in. */
export function listen({ pages, commands, find, ready }) {
  const help = () => shortcuts([
    ["Ctrl k", "Find queues, jobs, pages and actions"],
    ...pages.map(([, title, , key]) => [`g ${key}`, title]),
    ["/", "Search for queues"],
    ["j k", "Next and previous row of a list"],
    ["Enter", "Open what has the focus"],
    ["p", "Stop updates, or go on"],
    ["t", "Light or dark colours"],
    ["?", "This list"],
    ["Esc", "Close a dialog"],
  ]);
  const all = { ...commands, "?": help };
  let going = false;
  document.addEventListener("keydown", (event) => {
    if (!ready() || document.querySelector("dialog[open]")) return;
    const inside = event.target.closest?.(ROWS);
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") find();
    else if (event.target.closest?.(TYPING) || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (going && pages.some(([, , , key]) => key === event.key)) location.hash = `#/${pages.find(([, , , key]) => key === event.key)[0]}`;
    else if (STEPS[event.key] || (inside && ARROWS[event.key])) move(STEPS[event.key] ?? ARROWS[event.key]);
    else if (all[event.key]) all[event.key]();
    else {
      going = event.key === "g";
      return;
    }
    going = false;
    event.preventDefault();
  });
  return help;
}
