// One field for everything: pages, queues, jobs, and what can be done here.

import { at, get, key, part, pattern, query } from "/console/api.js";
import { h } from "/console/dom.js";

const JOB = /^D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}$/;
const QUEUES = 8;
const PAUSE_MS = 120;

/** The buttons of the page that is shown; each asks before it ends something, as it does under the mouse. */
function buttons() {
  const found = [...document.querySelectorAll("main .head .end button, main .card > .bar button")];
  return found.filter((one) => !one.disabled && !one.hasAttribute("aria-pressed") && one.checkVisibility())
    .map((one) => ({ kind: "Action", text: one.getAttribute("aria-label") ?? one.textContent, run: () => one.click() }));
}

const go = (kind, text, place) => ({ kind, text, run: () => { location.hash = place; } });

/** Open it. `pages`: names and titles; `commands`: texts and functions. */
export default function palette(pages, commands) {
  const known = [...buttons(), ...pages.map(([name, title]) => go("Page", title, `#/${name}`)), ...commands.map(([text, run]) => ({ kind: "Action", text, run }))];
  let [shown, chosen, timer, turn] = [[], 0, 0, 0];
  const field = h("input", {
    // No field for searches: Escape would only empty it.
    type: "text", role: "combobox", "aria-label": "Find queues, jobs, pages and actions", "aria-expanded": "true", "aria-controls": "found",
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", maxlength: 200, placeholder: "Queue, job, page or action",
  });
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const dialog = h("dialog", { class: "palette", "aria-label": "Find" }, field, list);

  function mark(next) {
    chosen = shown.length ? (next + shown.length) % shown.length : 0;
    [...list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === chosen)));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", `found-${chosen}`);
  }

  function run(entry) {
    dialog.close();
    entry?.run();
  }

  function show(queues) {
    const text = field.value.trim();
    const words = text.toLowerCase();
    const jobs = JOB.test(text) ? [go("Job", text, `#/jobs/${part(encodeURIComponent(text))}`)] : [];
    const search = text ? [go("Jobs", `Search jobs for “${text}”`, query("#/search", { text }))] : [];
    const matching = known.filter((one) => one.text.toLowerCase().includes(words));
    shown = [...jobs, ...matching, ...queues.map((row) => go("Queue", row.name, `#/queues/${key(row.url)}`)), ...search];
    list.replaceChildren(...shown.map((entry, place) => h("li", { id: `found-${place}`, role: "option", onclick: () => run(entry) }, h("span", { class: "soft" }, entry.kind), h("span", {}, entry.text))));
    mark(0);
  }

  /** Look for queues when nothing was typed for a moment; what comes too late is left out. */
  async function look() {
    const mine = (turn += 1);
    const text = field.value.trim();
    const answer = text && await get(query(at("counts"), { match: pattern(text), sort: "name", limit: QUEUES, cluster: 1 })).catch(() => null);
    if (mine === turn && dialog.open) show(answer?.queues ?? []);
  }

  field.addEventListener("input", () => {
    show([]);
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) mark(chosen + step);
    else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => { clearTimeout(timer); dialog.remove(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  show([]);
  dialog.showModal();
  field.focus();
}
