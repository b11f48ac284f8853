// Who is connected.

import { at, get, query } from "/console/api.js";
import { button, empty, h, put } from "/console/dom.js";
import { bytes, count, duration, many } from "/console/format.js";
import { Table } from "/console/table.js";

const PAGE = 100;
const DOING = { b: "waits for a job", c: "is being closed", A: "is being closed" };

const plain = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** What a worker reports in the name of its connection: disque-worker/NAME/SLOTS/HELD/QUEUES. */
function worker(row) {
  const parts = row.name.split("/");
  if (parts.length !== 5 || parts[0] !== "disque-worker" || !/^\d+$/.test(parts[2]) || !/^\d+$/.test(parts[3])) return null;
  const queues = parts[4].split(",").map((queue) => (queue ? plain(queue) : "…"));
  return { name: plain(parts[1]), slots: parts[2], held: parts[3], queues: queues.join(", ") };
}

/** What a client does now; of a worker, which queues it serves. */
function doing(row) {
  return worker(row)?.queues ?? DOING[[...row.flags].find((flag) => DOING[flag])] ?? "";
}

export default function clients(app) {
  let offset = 0;
  const table = new Table("Clients", [
    { title: "Client", class: "name", text: (row) => worker(row)?.name ?? (row.name || "(no name)") },
    { title: "Holds", num: true, text: (row) => (worker(row) ? `${count(worker(row).held)} of ${many(worker(row).slots, "job")}` : "") },
    { title: "Address", class: "mono", text: (row) => row.addr },
    { title: "Activity", text: doing },
    { title: "Last command", text: (row) => row.cmd },
    { title: "Idle", num: true, text: (row) => duration(row.idle) },
    { title: "Connected for", num: true, minor: true, text: (row) => duration(row.age) },
    { title: "Output buffer", num: true, minor: true, text: (row) => bytes(row.omem) },
    { title: "ID", num: true, minor: true, text: (row) => row.id },
  ], { key: (row) => row.id });
  const none = empty("No clients", "Workers that set a name are listed with it.");
  const range = h("span", {});
  const back = button("Previous", () => { offset -= PAGE; app.refresh(); }, { class: "small" });
  const forth = button("Next", () => { offset += PAGE; app.refresh(); }, { class: "small" });
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Workers and clients")),
    h("section", { class: "card" }, table.node, none, h("div", { class: "pager" }, range, h("span", { class: "spring" }), back, forth)));

  async function refresh(signal) {
    const answer = await get(query(at("clients"), { limit: PAGE, offset }), signal);
    table.update(answer.clients);
    none.hidden = answer.clients.length > 0;
    put(range, answer.total > PAGE ? `${count(offset + 1)} to ${count(offset + answer.clients.length)} of ${many(answer.total, "client")}` : many(answer.total, "client"));
    back.disabled = offset === 0;
    forth.disabled = offset + PAGE >= answer.total;
  }
  return { title: "Workers and clients", node, refresh, every_s: 5 };
}
