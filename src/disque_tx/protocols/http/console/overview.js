// What the node does at the moment.

import { at, get, key, query } from "/console/api.js";
import { BYTES, LineChart, SECONDS } from "/console/charts.js";
import { card, empty, h, put, segments, tiles } from "/console/dom.js";
import { bytes, count, duration, many, real, size } from "/console/format.js";
import { link, Table } from "/console/table.js";

const WINDOWS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];

/** Values per second between the samples of a counter. */
function rates(times, values) {
  return values.slice(1).map((value, number) =>
    Math.max(0, value - values[number]) / Math.max(0.001, (times[number + 1] - times[number]) / 1000));
}

export default function overview(app) {
  let window_s = Number(localStorage.getItem("window_s")) || 300;
  const about = h("span", { class: "soft" });
  const figures = tiles({
    added: "Added", delivered: "Delivered", acked: "Acknowledged", queued: "Queued", in_flight: "In flight",
    oldest: "Oldest waits", clients: "Clients", memory: "Memory", log: "Log",
  });
  const flow = new LineChart("Jobs/s", ["added", "delivered", "done"], real);
  const stock = new LineChart("Jobs on this node", ["queued", "in flight"], real, 4);
  const waits = new LineChart("Wait in the queue", ["oldest", "99 %", "median"], duration, 0.004, SECONDS);
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
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Overview"), about, h("div", { class: "end" }, choice)),
    figures.node, h("div", { class: "grid2" }, flow.node, stock.node, waits.node, memory.node),
    card("Queues that wait longest", h("a", { href: "#/queues" }, "All queues"), table.node, none));
  none.hidden = true;

  async function refresh(signal) {
    const [{ fields }, { samples, step_s }, { queues }] = await Promise.all([
      get(at("info"), signal),
      get(query(at("history"), { seconds: window_s }), signal),
      get(query(at("counts"), { sort: "oldest", limit: 6 }), signal),
    ]);
    const times = samples.at_ms;
    const speed = Object.fromEntries(["added", "delivered", "acked"].map((name) => [name, rates(times, samples[name])]));
    const middle = times.slice(1);
    put(about, `Disque-tx ${fields.disque_tx_version} · up for ${duration(Number(fields.uptime_in_seconds))} · ${many(Number(fields.reachable_nodes) + 1, "node")}`);
    const last = (name) => samples[name].at(-1);
    const notes = { delivered: `99 % waited at most ${duration(last("wait_p99_s"))}` };
    for (const name of Object.keys(speed)) figures.set(name, real(speed[name].at(-1) ?? 0), "jobs/s", notes[name] ?? `${count(last(name))} in all`);
    figures.set("queued", count(last("queued")), last("queued") === 1 ? "job" : "jobs", many(fields.registered_queues, "queue"));
    figures.set("in_flight", count(last("in_flight")), last("in_flight") === 1 ? "job" : "jobs", `${count(fields.jobs_in_backoff)} in backoff`);
    figures.set("oldest", duration(last("oldest_s")));
    figures.set("clients", count(last("clients")), "connected", `${count(last("blocked"))} wait for jobs`);
    const limit = Number(fields.maxmemory);
    figures.set("memory", ...size(last("memory_bytes")), limit ? `of ${bytes(limit)}, ${fields.memory_level}` : "no limit");
    const writes = fields.aof_enabled === "1";
    figures.set("log", ...(writes ? size(last("log_bytes")) : ["off", ""]), writes ? `last write: ${fields.aof_last_write_status}` : "jobs in memory only");
    flow.update(middle, [speed.added, speed.delivered, speed.acked], window_s);
    stock.update(times, [samples.queued, samples.in_flight], window_s);
    waits.update(times, [samples.oldest_s, samples.wait_p99_s, samples.wait_p50_s], window_s);
    memory.update(times, [samples.memory_bytes], window_s);
    none.hidden = queues.length > 0;
    table.node.hidden = !none.hidden;
    table.update(queues);
    page.every_s = step_s;
  }
  const page = { title: "Overview", node, refresh, every_s: 5, end: () => [flow, stock, waits, memory].forEach((chart) => chart.end()) };
  return page;
}
