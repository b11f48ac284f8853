// What is wrong, and what the cluster does at the moment.

import { at, counted, get, key, scope, scoped, slow } from "/console/api.js";
import { known } from "/console/cluster.js";
import { card, empty, h, put, tiles } from "/console/dom.js";
import { Findings } from "/console/findings.js";
import { bytes, count, duration, many, real, size } from "/console/format.js";
import { History } from "/console/history.js";
import { link, Table } from "/console/table.js";

const SHOWN = 6;
const EVERY_S = 5;
// All queues are looked through for the list: every second time is enough.
const LIST_MS = 1900 * EVERY_S;

const sum = (rows, name) => rows.reduce((total, row) => total + Number(row[name]), 0);

/** The word for the fullest memory of these nodes. */
function level(rows) {
  return ["above-95-percent", "above-75-percent", "normal"].find((word) => rows.some((row) => row.memory_level === word)) ?? "";
}

export default function overview(app) {
  const about = h("span", { class: "soft" });
  const figures = tiles({
    added: "Added", delivered: "Delivered", acked: "Acknowledged", queued: "Queued", in_flight: "In flight",
    oldest: "Oldest waits", clients: "Clients", memory: "Memory", log: "Log",
  });
  const history = new History(app, at("history"), true);
  const table = new Table("Queues that wait longest", [
    { title: "Queue", class: "name", fill: (cell, row) => cell.firstChild ?? cell.append(link(row.name, `#/queues/${key(row.url)}`, row.name)) },
    { title: "Oldest", num: true, text: (row) => duration(row.oldest_ms / 1000) },
    { title: "Queued (jobs)", num: true, text: (row) => count(row.queued) },
    { title: "In flight (jobs)", num: true, minor: true, text: (row) => count(row.in_flight) },
    { title: "In (jobs/s)", num: true, text: (row) => real(row.in_per_s) },
    { title: "Out (jobs/s)", num: true, text: (row) => real(row.out_per_s) },
  ], { key: (row) => row.url });
  const none = empty("No queues yet", "A queue exists as soon as a job is added to it:", "disque addjob mail 'hello' 0");
  const findings = new Findings();
  const list = slow(LIST_MS);
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Overview"), about, h("div", { class: "end" }, history.choice)),
    findings.node, figures.node, history.node,
    card("Queues that wait longest", h("a", { href: "#/queues" }, "All queues"), table.node, none));
  none.hidden = true;

  async function refresh(signal) {
    const [{ rows }, samples, { queues }, found] = await Promise.all([
      get(scoped(at("figures")), signal),
      history.refresh(signal),
      list(counted(at("counts"), { sort: "oldest", limit: 3 * SHOWN }), signal),
      get(scoped(at("findings")), signal),
    ]);
    findings.show(found.findings);
    const versions = [...new Set(rows.map((row) => row.version))].sort().join(", ");
    const mine = rows.find((row) => row.node === known.me) ?? rows[0];
    put(about, `Disque-tx ${versions} · ${scope.everywhere && rows.length > 1 ? "" : `up for ${duration(mine.uptime_s)} · `}${many(rows.length, "node")}`);
    const total = (name) => sum(rows, name);
    const last = (name) => samples[name].at(-1) ?? 0;
    const notes = { delivered: `99 % waited at most ${duration(last("wait_p99_ms") / 1000)}` };
    for (const name of ["added", "delivered", "acked"]) figures.set(name, real(last(name)), "jobs/s", notes[name] ?? "");
    figures.set("queued", count(total("queued")), total("queued") === 1 ? "job" : "jobs", rows.length > 1 ? "on all nodes" : many(mine.queues, "queue"));
    figures.set("in_flight", count(total("in_flight")), total("in_flight") === 1 ? "job" : "jobs", `${count(total("backoff"))} in backoff`);
    figures.set("oldest", duration(Math.max(0, ...rows.map((row) => Number(row.oldest_s)))));
    figures.set("clients", count(total("clients")), "connected", `${count(total("blocked"))} wait for jobs`);
    const limit = rows.every((row) => row.maxmemory_bytes) ? total("maxmemory_bytes") : 0;
    figures.set("memory", ...size(total("memory_bytes")), limit ? `of ${bytes(limit)}, ${level(rows)}` : "no limit");
    const logs = rows.filter((row) => row.log);
    const writes = rows.every((row) => row.log_ok) ? "last write: ok" : "cannot be written";
    figures.set("log", ...(logs.length ? size(total("log_bytes")) : ["off", ""]), logs.length ? (logs.length < rows.length ? `at ${logs.length} of ${many(rows.length, "node")}` : writes) : "jobs in memory only");
    // Dead letters wait for people: they are a finding above.
    const waiting = queues.filter((row) => !row.name.startsWith("dead:")).slice(0, SHOWN);
    none.hidden = queues.length > 0;
    table.node.hidden = !none.hidden;
    table.update(waiting);
  }
  return { title: "Overview", node, refresh, every_s: EVERY_S, end: () => history.end() };
}
