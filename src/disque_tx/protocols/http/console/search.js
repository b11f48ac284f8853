// Jobs with a text in them: a long walk in parts, whose filters are in the address.

import { at, get, key, query, scope, scoped } from "/console/api.js";
import { known, name } from "/console/cluster.js";
import { button, card, empty, h, put } from "/console/dom.js";
import { count, distance, many, preview, stateText } from "/console/format.js";
import { link, Table } from "/console/table.js";

const STATES = [["any", "Any state"], ["queued", "Queued"], ["active", "In flight, delayed, in backoff"], ["wait-repl", "Waiting for copies"], ["acked", "Done"]];
const FOUND_MAX = 500;
const BUSY_MS = 1000;

export default function search(app, words) {
  const filters = { text: words.get("text") ?? "", state: words.get("state") ?? "any", queue: words.get("queue") ?? "", attempts: words.get("attempts") ?? "" };
  let [begun, stopped, seen, found] = [false, false, 0, []];
  const missing = new Set();
  const field = h("input", { type: "search", value: filters.text, placeholder: "ID, key, task, arguments, error", "aria-label": "Text in jobs", maxlength: 200 });
  const state = h("select", { "aria-label": "State" }, STATES.map(([value, text]) => h("option", { value, selected: value === filters.state }, text)));
  const queue = h("input", { type: "text", value: filters.queue, placeholder: "Any queue", "aria-label": "Queue" });
  const attempts = h("input", { type: "number", min: 0, value: filters.attempts, placeholder: "0", "aria-label": "Failed attempts at least" });
  const form = h("form", { class: "head", onsubmit: (event) => { event.preventDefault(); go(); } }, field, state, queue,
    h("label", { class: "field" }, "Failed at least", attempts, "times"), h("button", {}, "Search"));
  const text = h("p", { role: "status" });
  const lack = h("p", { class: "bad", role: "status" });
  const bar = h("progress", { "aria-label": "Progress" });
  const stop = button("Stop", () => { stopped = true; }, { class: "small" });
  const progress = h("div", { class: "body" }, text, lack, bar, stop);
  const table = new Table("Jobs found", [
    { title: "Job", class: "mono", fill: (cell, row) => cell.firstChild ?? cell.append(link(row.id, `#/jobs/${key(row.url)}`)) },
    { title: "Queue", class: "name", text: (row) => row.queue ?? "" },
    { title: "State", minor: true, text: stateText },
    { title: "Failed", num: true, minor: true, text: (row) => count(Number(row.nacks) + Number(row.additional_deliveries)) },
    { title: "Added", num: true, minor: true, text: (row) => distance(Number(BigInt(row.ctime) / 1000000n)) },
    { title: "Body", class: "wide mono", text: (row) => preview(row.body ?? `${row.body_base64} (Base64)`) },
  ], { key: (row) => row.id });
  const hint = empty("Find a job by what you know of it", "The first characters of its ID, its key, the name of its task, its arguments, or the error for which it came back. The first 64 KiB of each job are looked at.", "");
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Search")), form, card("Jobs found", null, progress, table.node, hint));
  progress.hidden = table.node.hidden = true;

  function go() {
    const wanted = { text: field.value.trim(), state: state.value === "any" ? "" : state.value, queue: queue.value, attempts: Number(attempts.value) > 0 ? attempts.value : "" };
    const place = query("#/search", wanted);
    if (place === location.hash) location.reload();
    else location.hash = place;
  }

  function tell(end) {
    const all = known.rows.reduce((sum, row) => sum + Number(row.jobs), 0);
    bar.max = Math.max(all, seen, 1);
    bar.value = end ? bar.max : seen;
    bar.hidden = stop.hidden = end !== "";
    put(text, `${many(found.length, "job")} found${end ? `; ${end}` : ""}. ${many(seen, "job")} of about ${count(Math.max(all, seen))} ${scope.everywhere ? "on all nodes" : "at this node"} looked at.`);
    put(lack, missing.size ? `${[...missing].map(name).join(", ")} did not answer: jobs that are only there are not found.` : "");
  }

  /** From one part of the walk to the next, until the end or the button. */
  async function walk() {
    let cursor = "0";
    progress.hidden = false;
    hint.hidden = true;
    while (cursor !== null && !stopped && found.length < FOUND_MAX) {
      try {
        const answer = await get(scoped(at("search"), { ...filters, cursor }));
        seen += Number(answer.seen);
        cursor = answer.cursor;
        answer.nodes_missing.forEach((one) => missing.add(one));
        found = found.concat(answer.jobs);
      } catch (error) {
        if (error.code !== "TRYLATER") throw error;
        await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
      }
      table.update(found);
      table.node.hidden = !found.length;
      tell("");
    }
    tell(cursor === null ? "that is all" : stopped ? "stopped" : "there may be more: say more of what you look for");
  }

  async function refresh() {
    if (begun) return;
    begun = true;
    field.focus();
    if (!filters.text) return;
    walk().catch((error) => { tell("stopped by an error"); app.problem(error, true); });
  }
  return { title: "Search", node, refresh, every_s: 10, end: () => { stopped = true; } };
}
