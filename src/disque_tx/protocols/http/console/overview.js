// What is wrong, and what the cluster does at the moment.

import { at, counted, get, key, scope, scoped } from "/console/api.js";
import { BYTES, LineChart, SECONDS } from "/console/charts.js";
import { known } from "/console/cluster.js";
import { card, empty, h, put, segments, tiles } from "/console/dom.js";
import { Findings } from "/console/findings.js";
import { bytes, count, duration, many, real, size } from "/console/format.js";
import { link, Table } from "/console/table.js";

const SHOWN = 6;
const WINDOWS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];

/** Values per second between the samples of a counter. */
function rates(times, values) {
  return values.slice(1).map((value, number) =>
    Math.max(0, value - values[number]) / Math.max(0.001, (times[number + 1] - times[number]) / 1000));
}

const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);

/** The word for the fullest memory of these nodes. */
function level(rows) {
  return ["above-95-percent", "above-75-percent", "normal"].find((word) => rows.some((row) => row.memory_level === word)) ?? "";
}

export default function overview(app) {
  let window_s = Number(localStorage.getItem("window_s")) || 300;
  const about = h("span", { class: "soft" });
  const figures = tiles({
    added: "Added", delivered: "Delivered", acked: "Acknowledged", queued: "Queued", in_flight: "In flight",
    oldest: "Oldest waits", clients: "Clients", memory: "Memory", log: "Log",
  });
  const flow = new LineChart("Jobs/s", ["added", "delivered", "done"], real);
  const stock = new LineChart("Jobs", ["queued", "in flight"], real, 4);
  const waits = new LineChart("Wait in the queue", ["oldest", "99 % here", "median here"], duration, 0.004, SECONDS);
  const memory = new LineChart("Memory of jobs", ["used"], bytes, 1024, BYTES);
  const table = new Table("Queues that wait longest", [
    { title: "Queue", class: "name", fill: (cell, row) => cell.firstChild ?? cell.append(link(row.name, `#/queues/${key(row.url)}`, row.name)) },
    { title: "Oldest", num: true, text: (row) => duration(row.oldest_ms / 1000) },
    { title: "Queued (jobs)", num: true, text: (row) => count(row.queued) },
    { title: "In flight (jobs)", num: true, minor: true, text: (row) => count(row.in_flight) },
    { title: "In (jobs/s)", num: true, text: (row) => real(row.in_per_s) },
    { title: "Out (jobs/s)", num: true, text: (row) => real(row.out_per_s) },
  ], { key: (row) => row.url });
  const none = empty("No queues yet", "A queue exists as soon as a job is added to it:", "disque addjob mail 'hello' 0");
  const choice = segments("Window of the charts", WINDOWS, window_s, (value) => {
    window_s = value;
    localStorage.setItem("window_s", value);
    app.refresh();
  });
  const findings = new Findings();
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Overview"), about, h("div", { class: "end" }, choice)),
    findings.node, figures.node, h("div", { class: "grid2" }, flow.node, stock.node, waits.node, memory.node),
    card("Queues that wait longest", h("a", { href: "#/queues" }, "All queues"), table.node, none));
  none.hidden = true;

  async function refresh(signal) {
    const [{ rows }, { samples, step_s }, { queues }, found] = await Promise.all([
      get(scoped(at("figures")), signal),
      get(scoped(at("history"), { seconds: window_s }), signal),
      get(counted(at("counts"), { sort: "oldest", limit: 3 * SHOWN }), signal),
      get(scoped(at("findings")), signal),
    ]);
    findings.show(found.findings);
    const times = samples.at_ms;
    const speed = Object.fromEntries(["added", "delivered", "acked"].map((name) => [name, rates(times, samples[name])]));
    const middle = times.slice(1);
    const versions = [...new Set(rows.map((row) => row.version))].sort().join(", ");
    const mine = rows.find((row) => row.node === known.me) ?? rows[0];
    put(about, `Disque-tx ${versions} · ${scope.everywhere && rows.length > 1 ? "" : `up for ${duration(mine.uptime_s)} · `}${many(rows.length, "node")}`);
    const last = (name) => samples[name].at(-1);
    const notes = { delivered: `99 % waited at most ${duration(last("wait_p99_s"))} here` };
    for (const name of Object.keys(speed)) figures.set(name, real(speed[name].at(-1) ?? 0), "jobs/s", notes[name] ?? `${count(last(name))} in all`);
    figures.set("queued", count(last("queued")), last("queued") === 1 ? "job" : "jobs", rows.length > 1 ? "on all nodes" : many(mine.queues, "queue"));
    figures.set("in_flight", count(last("in_flight")), last("in_flight") === 1 ? "job" : "jobs", `${count(sum(rows, "backoff"))} in backoff`);
    figures.set("oldest", duration(last("oldest_s")));
    figures.set("clients", count(last("clients")), "connected", `${count(last("blocked"))} wait for jobs`);
    const limit = rows.every((row) => row.maxmemory_bytes) ? sum(rows, "maxmemory_bytes") : 0;
    figures.set("memory", ...size(last("memory_bytes")), limit ? `of ${bytes(limit)}, ${level(rows)}` : "no limit");
    const logs = rows.filter((row) => row.log);
    const writes = rows.every((row) => row.log_ok) ? "last write: ok" : "cannot be written";
    figures.set("log", ...(logs.length ? size(last("log_bytes")) : ["off", ""]), logs.length ? (logs.length < rows.length ? `at ${logs.length} of ${many(rows.length, "node")}` : writes) : "jobs in memory only");
    flow.update(middle, [speed.added, speed.delivered, speed.acked], window_s);
    stock.update(times, [samples.queued, samples.in_flight], window_s);
    waits.update(times, [samples.oldest_s, samples.wait_p99_s, samples.wait_p50_s], window_s);
    memory.update(times, [samples.memory_bytes], window_s);
    // Dead letters wait for people: they are told above.
    const waiting = queues.filter((row) => !row.name.startsWith("dead:")).slice(0, SHOWN);
    none.hidden = queues.length > 0;
    table.node.hidden = !none.hidden;
    table.update(waiting);
    page.every_s = step_s;
  }
  const page = { title: "Overview", node, refresh, every_s: 5, end: () => [flow, stock, waits, memory].forEach((chart) => chart.end()) };
  return page;
}
