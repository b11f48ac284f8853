// What took long.

import { at, get, scoped } from "/console/api.js";
import { name } from "/console/cluster.js";
import { card, empty, h, put } from "/console/dom.js";
import { distance, duration, moment, preview } from "/console/format.js";
import { Table } from "/console/table.js";

const MOST = 100;

function time(cell, row) {
  put(cell, distance(row.at_s * 1000));
  cell.title = moment(row.at_s * 1000);
}

export default function slowlog() {
  const commands = new Table("Slow commands", [
    { title: "Command", class: "wide mono", text: (row) => preview(row.words.join(" "), 300) },
    { title: "Took", num: true, text: (row) => duration(row.duration_us / 1e6) },
    { title: "When", num: true, fill: time },
    { title: "Node", minor: true, text: (row) => name(row.node) },
  ], { key: (row) => `${row.node} ${row.id}` });
  const nocommands = empty("No command took long", "How long is too long, in microseconds:", "disque config set slowlog-log-slower-than 10000");
  const events = new Table("Latency events", [
    { title: "Event", text: (row) => row.event },
    { title: "Latest", num: true, text: (row) => duration(row.latest_ms / 1000) },
    { title: "Worst", num: true, text: (row) => duration(row.worst_ms / 1000) },
    { title: "When", num: true, fill: time },
    { title: "Node", minor: true, text: (row) => name(row.node) },
  ], { key: (row) => `${row.node} ${row.event}` });
  const noevents = empty("No delays were recorded", "Events that take longer than this, in milliseconds, are recorded:", "disque config set latency-monitor-threshold 100");
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Slow log")),
    card("Slow commands", null, commands.node, nocommands), card("Latency events", null, events.node, noevents));

  async function refresh(signal) {
    const [slow, delays] = await Promise.all([get(scoped(at("slowlog"), { limit: MOST }), signal), get(scoped(at("latency")), signal)]);
    for (const [table, none, rows] of [[commands, nocommands, slow.entries], [events, noevents, delays.events]]) {
      table.update(rows);
      table.node.hidden = !rows.length;
      none.hidden = rows.length > 0;
    }
  }
  return { title: "Slow log", node, refresh, every_s: 10 };
}
