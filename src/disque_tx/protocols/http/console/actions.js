// Who changed how the nodes work.

import { at, get, scoped } from "/console/api.js";
import { name } from "/console/cluster.js";
import { card, empty, h, put } from "/console/dom.js";
import { count, distance, moment } from "/console/format.js";
import { Table } from "/console/table.js";

const MOST = 1000;

export default function actions() {
  const table = new Table("Actions", [
    { title: "What", class: "wide mono", text: (row) => (row.refused ? `${row.what}, refused: ${row.refused}` : row.what) },
    { title: "Jobs", num: true, text: (row) => (row.jobs === null ? "" : count(row.jobs)) },
    { title: "Who", text: (row) => row.who || "the node" },
    { title: "When", num: true, fill: (cell, row) => { put(cell, distance(row.at_ms)); cell.title = moment(row.at_ms); } },
    { title: "Node", minor: true, text: (row) => name(row.node) },
  ], { key: (row) => JSON.stringify([row.node, row.at_ms, row.what, row.who, row.place]) });
  const none = empty("Nobody changed anything yet", "To mark a moment in the charts:", 'disque note "deployed 4711"');
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Actions"),
    h("span", { class: "soft" }, "The last 1,000 of each node: what changed how it works")), card("Actions", null, table.node, none));

  async function refresh(signal) {
    const { actions: found } = await get(scoped(at("actions"), { limit: MOST }), signal);
    const seen = new Map();
    for (const row of found) {
      // Several of one millisecond may look the same.
      const same = `${row.node} ${row.at_ms}`;
      row.place = seen.get(same) ?? 0;
      seen.set(same, row.place + 1);
    }
    table.update(found);
    table.node.hidden = !found.length;
    none.hidden = found.length > 0;
  }
  return { title: "Actions", node, refresh, every_s: 10 };
}
