// Workers, each once however many connections it has: what each does, and what it can be told.

import { at, get, post, scoped, segment } from "/console/api.js";
import { name as nodeName } from "/console/cluster.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put, renew } from "/console/dom.js";
import { count, duration, many } from "/console/format.js";
import { progress } from "/console/progress.js";
import { link, Table } from "/console/table.js";

const MOST = 1000;
// Workers say something every five seconds.
const SILENT_S = 30;
const SHOWN = 5;
const STATES = { taking: ["takes jobs", "good"], idle: ["takes no jobs", "warn"], stopping: ["stops after its jobs", "warn"] };
const FEW = 6;

/** A text with smaller lines below it; all of it under the mouse. */
function stack(cell, text, ...lines) {
  if (!cell.firstChild) cell.append(h("div", { class: "times" }, h("span", {}), lines.map(() => h("small", { class: "soft" }))));
  [text, ...lines].forEach((line, at) => put(cell.firstChild.children[at], line));
}

/** Some names, and whether there are more. */
function some(names, cut) {
  return names.slice(0, FEW).join(", ") + (names.length > FEW || (cut && names.length) ? ", …" : "");
}

/** Where a worker runs. */
function place(row) {
  const host = row.host && `${row.host}, process ${row.pid}`;
  return host || row.hosts.join(", ");
}

/** How it is: a text, and the kind of its badge. */
export function state(row) {
  if (!row.connected) return ["connection lost", "bad"];
  if (row.heard_s !== null && row.heard_s > SILENT_S) return ["silent", "bad"];
  return STATES[row.state];
}

/** What a worker works on. */
function jobs(cell, row) {
  const shown = row.jobs.slice(0, SHOWN);
  const more = row.running - shown.length;
  renew(cell, ...shown.map((job) => h("div", { class: "does" },
    link(job.task || job.queue, `#/jobs/${segment(job.id)}`, job.id), h("span", { class: "soft" }, ` of ${job.queue}, for ${duration(Math.round(job.for_s))}`),
    job.progress === undefined ? null : progress(job.progress, job.note))), more > 0 ? h("div", { class: "soft" }, `and ${many(more, "more job")}`) : "");
}

export default function workers(app) {
  const table = new Table("Workers", [
    { title: "Worker", class: "name", fill: (cell, row) => stack(cell, row.worker, place(row), [row.version, row.nodes.map(nodeName).join(", ")].filter(Boolean).join(" at ")) },
    { title: "State", fill: badge },
    { title: "Works on", class: "wide", fill: jobs },
    { title: "Holds (jobs)", num: true, text: (row) => count(row.held) },
    { title: "At a time (jobs)", num: true, text: (row) => count(row.slots) },
    { title: "Done (last hour)", num: true, text: (row) => (row.id ? count(row.done) : "") },
    { title: "Failed (last hour)", num: true, text: (row) => (row.id ? count(row.failed) : "") },
    { title: "Serves", class: "wide", fill: serves },
    ...(app.writes ? [{ title: "", fill: actions }] : []),
  ], { key: (row) => row.id || `name ${row.worker}` });
  const none = empty("No workers", "Programs that do jobs are listed here if they use the workers of this package:", "disque work shop.tasks:handlers");
  const note = h("span", { class: "soft" });
  const hint = h("p", { class: "soft hint" });
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Workers")), card("Workers", note, table.node, none), hint);

  function badge(cell, row) {
    const [text, kind] = state(row);
    if (!cell.firstChild) cell.append(h("div", { class: "times" }, h("span", {}, h("span", { class: "badge" })), h("small", { class: "soft" })));
    const [word, heartbeat] = cell.firstChild.children;
    word.firstChild.className = `badge ${kind}`;
    put(word.firstChild, text);
    put(heartbeat, row.heard_s === null ? "" : `last heartbeat ${duration(Math.round(row.heard_s))} ago`);
  }

  function serves(cell, row) {
    stack(cell, some(row.queues, row.cut), some(row.tasks, row.cut));
    cell.title = [...row.queues, ...row.tasks].join(", ");
  }

  function order(row, command, done) {
    return app.act(() => post(scoped(at("workers", segment(row.id), "command")), { command }), done);
  }

  function actions(cell, row, isNew) {
    if (isNew) {
      cell.append(
        button("", () => (cell.row.state === "taking" ? order(cell.row, "stop-taking", `${cell.row.worker} will take no more jobs.`) : order(cell.row, "take", `${cell.row.worker} will take jobs again.`)), { class: "small" }), " ",
        button("Stop…", async () => {
          const sure = await confirm(`Stop ${cell.row.worker}?`, `It takes no more jobs, does those that it has, and ends. Whether it is started again is up to what has started it.`, "Stop after its jobs");
          if (sure) await order(cell.row, "stop", `${cell.row.worker} will stop after its jobs.`);
        }, { class: "small danger", "aria-label": `Stop ${row.worker} after its jobs` }));
    }
    cell.row = row;
    const [take, stop] = cell.querySelectorAll("button");
    const verb = row.state === "taking" ? "Stop taking jobs" : "Take jobs again";
    put(take, verb);
    take.setAttribute("aria-label", `${verb}: ${row.worker}`);
    take.hidden = stop.hidden = !row.control || !row.connected;
    take.disabled = stop.disabled = row.state === "stopping";
  }

  async function refresh(signal) {
    const { workers: found, total } = await get(scoped(at("workers"), { limit: MOST }), signal);
    table.update(found);
    table.node.hidden = !found.length;
    none.hidden = found.length > 0;
    put(note, total > found.length ? `The first ${count(found.length)} of ${count(total)}` : "");
    const uncontrolled = found.filter((row) => !row.control).length;
    const why = !uncontrolled ? "" : `${many(uncontrolled, "worker")} cannot be controlled from here: only those that were started with --remote-control can.`;
    put(hint, app.writes ? why : "");
    hint.hidden = !hint.textContent;
  }
  return { title: "Workers", node, refresh, every_s: 5 };
}
