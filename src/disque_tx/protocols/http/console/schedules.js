// Jobs that wait for their time, and jobs that recur.

import { at, counted, get, key, post, query, remove, segment } from "/console/api.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put, renew } from "/console/dom.js";
import { count, distance, moment, momentIn } from "/console/format.js";
import { link, Table } from "/console/table.js";

const MOST = 1000;

export default function schedules(app) {
  const table = new Table("Recurring jobs", [
    { title: "Name", class: "name", text: (row) => row.name },
    { title: "When", fill: (cell, row) => renew(cell, h("code", {}, row.when), " ", h("span", { class: "unit" }, row.zone)) },
    { title: "Queue", class: "name", fill: (cell, row) => renew(cell, link(row.queue, `#/queues/${segment(row.queue)}`)) },
    { title: "Next", fill: (cell, row) => time(cell, row, row.paused ? null : row.next_s[0], "") },
    { title: "Last", fill: (cell, row) => time(cell, row, row.last_s, "never") },
    { title: "State", fill: state },
    ...(app.writes ? [{ title: "", fill: actions }] : []),
  ], { key: (row) => row.url });
  const none = empty("No recurring jobs", "The cluster adds a job whenever its schedule says so:", "disque schedule set nightly '0 3 * * *' reports all");
  const waiting = new Table("Jobs that wait for their time", [
    { title: "Queue", class: "name", fill: (cell, row) => cell.firstChild ?? cell.append(link(row.name, `#/queues/${key(row.url)}`)) },
    { title: "Delayed (jobs)", num: true, text: (row) => count(row.delayed) },
    { title: "In backoff (jobs)", num: true, text: (row) => count(row.backoff) },
    { title: "Queued (jobs)", num: true, minor: true, text: (row) => count(row.queued) },
  ], { key: (row) => row.url });
  const nothing = empty("No job waits for its time", "Jobs wait for their DELAY, or for another attempt after a failure:", "disque addjob mail 'later' 0 DELAY 60");
  const note = h("span", { class: "soft" });
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Delayed and recurring jobs")),
    card("Recurring jobs", null, table.node, none), card("Delayed and in backoff", note, waiting.node, nothing));

  /** A time, by the clock of who looks at it, and by that of the schedule where it differs. */
  function time(cell, row, seconds, otherwise) {
    if (!cell.firstChild) cell.append(h("div", { class: "times" }, h("span", {}), h("small", {}), h("small", {})));
    const [far, here, there] = cell.firstChild.children;
    const elsewhere = seconds ? momentIn(seconds * 1000, row.zone) : "";
    put(far, seconds ? distance(seconds * 1000) : otherwise);
    put(here, seconds ? moment(seconds * 1000) : "");
    put(there, elsewhere && `${elsewhere} ${row.zone}`);
  }

  function state(cell, row) {
    const [text, kind] = row.error ? [row.error, "bad"] : row.paused ? ["paused", "warn"] : ["active", "good"];
    // An error may be long: it is shown whole below the word, and takes no room from the buttons.
    const word = row.error ? "failed" : text;
    renew(cell, h("span", { class: `badge ${kind}` }, word), h("div", { class: "error bad" }, row.error));
  }

  function actions(cell, row, isNew) {
    if (isNew) {
      const path = (verb) => at("schedules", key(row.url), ...verb);
      cell.append(
        button("Run now", () => app.act(() => post(path(["run"])), `The job of ${row.name} is added.`), { class: "small", "aria-label": `Run ${row.name} now` }), " ",
        button("", () => app.act(() => post(path([cell.row.paused ? "resume" : "pause"])), cell.row.paused ? `${row.name} goes on.` : `${row.name} is paused.`), { class: "small" }), " ",
        button("Skip next…", async () => {
          const [next_s] = cell.row.next_s;
          const sure = await confirm(`Skip the next run of ${row.name}?`, `Its job of ${moment(next_s * 1000)} is not added; the run after that is.`, "Skip");
          if (sure) await app.act(() => post(path(["skip"])), (done) => `The run of ${moment(done.skipped_s * 1000)} is skipped.`);
        }, { class: "small", "aria-label": `Skip the next run of ${row.name}` }), " ",
        button("Delete…", async () => {
          const sure = await confirm(`Delete ${row.name}?`, "No more jobs are added. Those that it added stay.", "Delete");
          if (sure) await app.act(() => remove(path([])), `${row.name} is deleted.`);
        }, { class: "small danger", "aria-label": `Delete ${row.name}` }));
    }
    cell.row = row;
    const verb = row.paused ? "Resume" : "Pause";
    put(cell.children[1], verb);
    cell.children[1].setAttribute("aria-label", `${verb} ${row.name}`);
    cell.children[2].disabled = row.paused || !row.next_s.length;
  }

  async function refresh(signal) {
    const [recurring, counts] = await Promise.all([
      get(query(at("schedules"), { limit: MOST }), signal),
      get(counted(at("counts"), { sort: "name", limit: MOST }), signal),
    ]);
    table.update(recurring.schedules);
    table.node.hidden = !recurring.schedules.length;
    none.hidden = !table.node.hidden;
    const rows = counts.queues.filter((row) => row.delayed || row.backoff);
    waiting.update(rows);
    waiting.node.hidden = !rows.length;
    nothing.hidden = rows.length > 0;
    put(note, counts.cursor === null ? "" : `Of the first ${count(MOST)} queues by name`);
  }
  return { title: "Delayed and recurring jobs", node, refresh, every_s: 10 };
}
