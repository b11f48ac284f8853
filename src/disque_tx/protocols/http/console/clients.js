// Who is connected.

import { at, get, scoped } from "/console/api.js";
import { name as nodeName } from "/console/cluster.js";
import { button, card, h, put } from "/console/dom.js";
import { bytes, count, duration, many } from "/console/format.js";
import { Table } from "/console/table.js";

const PAGE = 1000;
const DOING = { b: "waits for a job", c: "is being closed", A: "is being closed" };

const plain = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** The name of a client; of a connection of a worker, that of the worker: disque-worker/NAME/SLOTS/HELD/QUEUES. */
function named(row) {
  const parts = row.name.split("/");
  return parts.length === 5 && parts[0] === "disque-worker" ? `worker ${plain(parts[1])}` : row.name || "(no name)";
}

export default function clients(app) {
  let offset = 0;
  const table = new Table("Clients", [
    { title: "Client", class: "name", text: named },
    { title: "Address", class: "mono", text: (row) => row.addr },
    { title: "Activity", minor: true, text: (row) => DOING[[...row.flags].find((flag) => DOING[flag])] ?? "" },
    { title: "Last command", text: (row) => row.cmd },
    { title: "Idle", num: true, text: (row) => duration(row.idle) },
    { title: "Connected for", num: true, minor: true, text: (row) => duration(row.age) },
    { title: "Output buffer", num: true, minor: true, text: (row) => bytes(row.omem) },
    { title: "Node", minor: true, text: (row) => nodeName(row.node) },
    { title: "ID", num: true, minor: true, text: (row) => row.id },
  ], { key: (row) => `${row.node} ${row.id}` });
  const range = h("span", {});
  const back = button("Previous", () => { offset -= PAGE; app.refresh(); }, { class: "small" });
  const forth = button("Next", () => { offset += PAGE; app.refresh(); }, { class: "small" });
  const pager = h("div", { class: "pager" }, range, h("span", { class: "spring" }), back, forth);
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Clients"), h("span", { class: "soft" }, "Connections, those of workers among them")),
    card("Connections", null, table.node, pager));

  async function refresh(signal) {
    const answer = await get(scoped(at("clients"), { limit: PAGE, offset }), signal);
    table.update(answer.clients);
    put(range, answer.total > PAGE ? `Connections ${count(offset + 1)} to ${count(offset + answer.clients.length)} of ${count(answer.total)}` : many(answer.total, "connection"));
    back.hidden = forth.hidden = answer.total <= PAGE;
    back.disabled = offset === 0;
    forth.disabled = offset + PAGE >= answer.total;
  }
  return { title: "Clients", node, refresh, every_s: 5 };
}
