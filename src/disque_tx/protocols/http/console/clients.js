// Who is connected.

import { at, get, query } from "/console/api.js";
import { button, empty, h, put } from "/console/dom.js";
import { bytes, count, duration, many } from "/console/format.js";
import { Table } from "/console/table.js";

const PAGE = 100;
const DOING = { b: "waits for a job", c: "is being closed", A: "is being closed" };

export default function clients(app) {
  let offset = 0;
  const table = new Table("Clients", [
    { title: "Client", class: "name", text: (row) => row.name || "(no name)" },
    { title: "Address", class: "mono", text: (row) => row.addr },
    { title: "Does", text: (row) => DOING[[...row.flags].find((flag) => DOING[flag])] ?? "" },
    { title: "Last command", text: (row) => row.cmd },
    { title: "Idle", num: true, text: (row) => duration(row.idle) },
    { title: "Connected for", num: true, minor: true, text: (row) => duration(row.age) },
    { title: "Unread answers", num: true, minor: true, text: (row) => bytes(row.omem) },
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
