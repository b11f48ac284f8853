// All queues: searched, sorted, by pages.

import { at, counted, get, key, pattern, post } from "/console/api.js";
import { sparkline } from "/console/charts.js";
import { button, empty, h, put } from "/console/dom.js";
import { count, duration, many, real } from "/console/format.js";
import { link, Table } from "/console/table.js";

const PAGE = 50;
const KEPT = 60;

export default function queues(app) {
  let sort = "queued";
  let cursors = [undefined];
  const lengths = new Map();
  const search = h("input", { type: "search", id: "search", placeholder: "Search: mail:*", "aria-label": "Search for queues", maxlength: "200" });
  const table = new Table("Queues", [
    { title: "Queue", sort: "name", ascending: true, class: "name", fill: name },
    { title: "Queued (jobs)", num: true, sort: "queued", text: (row) => count(row.queued) },
    { title: "Trend", minor: true, fill: trend },
    { title: "Oldest", num: true, sort: "oldest", text: (row) => duration(row.oldest_ms / 1000) },
    { title: "In (jobs/s)", num: true, minor: true, text: (row) => real(row.in_per_s) },
    { title: "Out (jobs/s)", num: true, minor: true, sort: "rate", text: (row) => real(row.out_per_s) },
    { title: "In flight (jobs)", num: true, minor: true, text: (row) => count(row.in_flight) },
    { title: "Waiting (clients)", num: true, minor: true, text: (row) => count(row.blocked_clients) },
    { title: "Dead (jobs)", num: true, text: (row) => count(row.dead) },
    ...(app.writes ? [{ title: "", minor: true, fill: actions }] : []),
  ], { key: (row) => row.url, sorted: sort, onsort: (word) => change(() => { sort = word; }) });
  const range = h("span", {});
  const back = button("Previous", () => { cursors.pop(); app.refresh(); }, { class: "small" });
  const forth = button("Next", () => { cursors.push(forth.cursor); app.refresh(); }, { class: "small" });
  const none = empty("No queues yet", "A queue exists as soon as a job is added to it:", "disque addjob mail 'hello' 0");
  const unfound = empty("No queue has such a name", "Search for another word, or use * and ? in a pattern.");
  const node = h("div", { class: "page" },
    h("div", { class: "head" }, h("h1", {}, "Queues"), h("div", { class: "end" }, search)),
    h("section", { class: "card" }, table.node, none, unfound, h("div", { class: "pager" }, range, h("span", { class: "spring" }), back, forth)));
  none.hidden = unfound.hidden = true;
  let typed = 0;
  search.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => change(() => {}), 200);
  });

  function change(how) {
    how();
    cursors = [undefined];
    table.mark(sort);
    app.refresh();
  }

  function name(cell, row, isNew) {
    if (isNew) cell.append(link(row.name, `#/queues/${key(row.url)}`, row.name), " ", h("span", { class: "badge warn" }));
    cell.lastChild.hidden = row.pause === "none";
    put(cell.lastChild, row.pause === "all" ? "paused" : `paused: ${row.pause}`);
  }

  function trend(cell, row) {
    const values = lengths.get(row.url) ?? [];
    const line = sparkline(cell.firstChild, values, `From ${count(values[0])} to ${many(values.at(-1), "job")}`);
    if (!cell.firstChild) cell.append(line);
  }

  function actions(cell, row, isNew) {
    if (isNew) cell.append(button("", () => toggle(cell.row), { class: "small" }));
    cell.row = row;
    const verb = row.pause === "none" ? "Pause" : "Resume";
    put(cell.firstChild, verb);
    cell.firstChild.setAttribute("aria-label", `${verb} ${row.name} on all nodes`);
    cell.firstChild.title = `${verb} on all nodes`;
  }

  function toggle(row) {
    const pause = row.pause === "none" ? "all" : "none";
    return app.act(() => post(at("queues", key(row.url), "pause"), { pause, kept: true }),
      `${row.name} ${pause === "all" ? "is paused on all nodes: nothing comes in or goes out" : "goes on at all nodes"}.`);
  }

  async function refresh(signal) {
    const match = pattern(search.value.trim());
    const answer = await get(counted(at("counts"), { sort, match, limit: PAGE, cursor: cursors.at(-1) }), signal);
    for (const row of answer.queues) {
      const values = lengths.get(row.url) ?? [];
      values.push(Number(row.queued));
      lengths.delete(row.url);
      lengths.set(row.url, values.slice(-KEPT));
    }
    while (lengths.size > 20 * PAGE) lengths.delete(lengths.keys().next().value);
    table.update(answer.queues);
    const first = (cursors.length - 1) * PAGE;
    const shown = answer.queues.length;
    table.node.hidden = !shown;
    none.hidden = shown > 0 || match !== "";
    unfound.hidden = shown > 0 || match === "";
    put(range, shown ? `Queues ${count(first + 1)} to ${count(first + shown)}` : "");
    forth.cursor = answer.cursor;
    forth.disabled = answer.cursor === null;
    back.disabled = cursors.length === 1;
  }
  return { title: "Queues", node, refresh, every_s: 5, end: () => clearTimeout(typed) };
}
