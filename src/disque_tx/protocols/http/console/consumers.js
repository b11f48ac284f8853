// Who takes jobs from a queue: the workers and the Spark queries that name it, and how far they are behind.

import { at, plain, scoped, slow } from "/console/api.js";
import { card, h, put } from "/console/dom.js";
import { count, duration } from "/console/format.js";
import { link, Table } from "/console/table.js";
import { state } from "/console/workers.js";

const MOST = 20;
// They send something every five seconds, and every node is asked.
const REST_MS = 6000;

/** `name`: of the queue, as in the path. */
export function consumers(name) {
  const ask = slow(REST_MS);
  const table = new Table("Consumers", [
    { title: "Consumer", class: "name", fill: (cell, row) => put((cell.firstChild ?? cell.appendChild(link("", "#/workers"))), title(row)) },
    { title: "State", fill: badge },
    { title: "Oldest waits", num: true, text: (row) => (behind(row) ? duration(behind(row).oldest_s) : "") },
    { title: "Holds (jobs)", num: true, text: (row) => count(row.held) },
  ], { key: (row) => row.id || `name ${row.worker}` });
  const note = h("span", { class: "soft" });
  const node = card("Consumers", note, table.node);
  node.hidden = true;

  function behind(row) {
    return row.behind.find((one) => one.queue === plain(name));
  }

  function title(row) {
    return behind(row) ? `${row.worker}: ${count(behind(row).queued)} behind` : row.worker;
  }

  function badge(cell, row) {
    const [text, kind] = state(row);
    if (!cell.firstChild) cell.append(h("span", { class: "badge" }));
    cell.firstChild.className = `badge ${kind}`;
    put(cell.firstChild, text);
  }

  async function refresh(signal) {
    const { workers, total } = await ask(scoped(at("workers"), { queue: plain(name), limit: MOST }), signal);
    table.update(workers);
    node.hidden = !workers.length;
    put(note, total > workers.length ? `The first ${count(workers.length)} of ${count(total)}` : "");
  }
  return { node, refresh };
}
