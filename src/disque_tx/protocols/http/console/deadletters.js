// Jobs of a queue that workers gave up on, by similar reasons: put back, or dropped, with progress.

import { at, get, key, plain, post, scoped, where } from "/console/api.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put } from "/console/dom.js";
import { count, distance, many, moment } from "/console/format.js";
import { link, Table } from "/console/table.js";

const BATCH = 500;

export function letters(app, name) {
  const path = (...rest) => at("queues", name, "dead-letters", ...rest);
  let [total, stopped, busy] = [0, false, false];
  const text = h("span", {});
  const bar = h("progress", { "aria-label": "Progress" });
  const stop = button("Stop", () => { stopped = true; }, { class: "small" });
  const progress = h("div", { class: "body" }, h("p", { role: "status" }, text), bar, stop);
  const groups = new Table("Dead letters by reason", [
    { title: "Reason", class: "wide", text: (row) => row.reason || "(none given)" },
    { title: "Jobs", num: true, text: (row) => count(row.count) },
    { title: "Examples", minor: true, class: "wide mono", fill: some },
    { title: "Last", minor: true, fill: last },
    ...(app.writes ? [{ title: "", fill: actions }] : []),
  ], { key: (row) => row.similar });
  const more = h("p", { class: "body soft" });
  const none = empty("No dead letters", "Jobs come here when workers have given up on them.");
  const everything = app.writes && [
    button("Requeue all…", everyOne, { class: "small" }),
    button("Drop all…", () => drop({ all: true }, total), { class: "small danger" }),
  ];
  const node = card("Dead letters", everything, progress, groups.node, more, none);
  progress.hidden = groups.node.hidden = more.hidden = true;
  for (const one of everything || []) one.hidden = true;

  function some(cell, row) {
    cell.replaceChildren(...row.letters.slice(0, 2).flatMap((one) => [link(one.job_id ?? one.id, `#/jobs/${key(one.url)}`, "The letter that holds the job"), h("br")]).slice(0, -1));
  }

  function last(cell, row) {
    const times = row.letters.map((one) => one.failed_at_s).filter(Boolean);
    const ms = Math.max(...times) * 1000;
    put(cell, times.length ? distance(ms) : "");
    if (times.length) cell.title = moment(ms);
  }

  function actions(cell, row, isNew) {
    cell.row = row;
    if (!isNew) return;
    const choice = { similar: row.similar };
    cell.append(
      button("Requeue", () => run("requeue", choice, cell.row.count), { class: "small", "aria-label": `Requeue: ${row.reason}` }), " ",
      button("Drop…", () => drop(choice, cell.row.count), { class: "small danger", "aria-label": `Drop: ${row.reason}` }));
  }

  async function everyOne() {
    const expected = total;
    const sure = await confirm(`Requeue ${many(expected, "job")}?`, `All dead letters of ${plain(name)} ${where()} become jobs of their queue again, and workers get them at once.`, "Requeue", { safe: true });
    if (sure) await run("requeue", { all: true }, expected);
  }

  async function drop(choice, expected) {
    const which = choice.all ? "Of all reasons." : `Reason: ${choice.similar || "(none given)"}.`;
    const sure = await confirm(`Drop ${many(expected, "dead letter")} of ${plain(name)}?`, `${which} ${expected === 1 ? "It is" : "They are"} ${where()}. The jobs in them are lost. This cannot be undone.`, "Drop");
    if (sure) await run("drop", choice, expected);
  }

  /** In batches, so that others are served in between, and one can stop. */
  async function run(verb, choice, expected) {
    if (busy) return;
    [busy, stopped] = [true, false];
    let [done, failed] = [0, null];
    progress.hidden = false;
    bar.max = expected;
    await app.act(async () => {
      while (!stopped && !failed && done < expected) {
        bar.value = done;
        put(text, `${verb === "requeue" ? "Requeued" : "Dropped"} ${count(done)} of ${many(expected, "job")}`);
        const answer = await post(scoped(path(verb)), { ...choice, limit: Math.min(BATCH, expected - done) });
        done += answer.count;
        if (answer.failed_count) failed = answer.failed[0];
        if (!answer.count) break;
      }
      if (failed) throw { title: `${many(done, "job")} done, then it failed`, detail: failed.detail };
    }, () => `${many(done, "job")} ${verb === "requeue" ? "requeued" : "dropped"}${stopped ? ", then stopped" : ""}.`);
    progress.hidden = true;
    busy = false;
  }

  async function refresh(signal) {
    const answer = await get(scoped(path(), { by: "similar" }), signal);
    total = answer.total;
    groups.update(answer.reasons);
    const listed = answer.reasons.reduce((sum, row) => sum + row.count, 0);
    const unlisted = answer.groups - answer.reasons.length;
    const hints = [
      unlisted > 0 && `${many(unlisted, "more reason")} with ${many(answer.read - listed, "job")} ${unlisted === 1 ? "is" : "are"} not listed.`,
      answer.truncated && `Of ${many(total, "dead letter")} the oldest ${count(answer.read)} were read: reasons of the others are not counted.`,
    ].filter(Boolean);
    put(more, hints.join(" "));
    more.hidden = !hints.length;
    none.hidden = total > 0;
    groups.node.hidden = total === 0;
    for (const one of everything || []) one.hidden = total === 0;
  }
  return { node, refresh, end: () => { stopped = true; } };
}
