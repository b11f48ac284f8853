// Jobs of a queue that workers gave up on, by similar reasons: put back, or dropped, with progress.

import { at, get, key, plain, post, scoped, where } from "/console/api.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put, renew } from "/console/dom.js";
import { count, distance, many, moment } from "/console/format.js";
import { link, Table } from "/console/table.js";
import { undoable } from "/console/undo.js";
import { askWhen } from "/console/when.js";

const BATCH = 500;
const PAUSE_MS = 300;

export function letters(app, name) {
  const path = (...rest) => at("queues", name, "dead-letters", ...rest);
  let [total, matched, stopped, busy, opened, words, timer] = [0, 0, false, false, null, "", 0];
  const chosen = new Set();
  const text = h("span", {});
  const bar = h("progress", { "aria-label": "Progress" });
  const stop = button("Stop", () => { stopped = true; }, { class: "small" });
  const progress = h("div", { class: "body" }, h("p", { role: "status" }, text), bar, stop);
  const groups = new Table("Dead letters by reason", [
    { title: "Reason", class: "wide", text: (row) => row.reason || "(none given)" },
    { title: "Jobs", num: true, text: (row) => count(row.count) },
    { title: "Examples", minor: true, class: "wide mono", fill: some },
    { title: "Last", minor: true, fill: last },
    { title: "", fill: actions },
  ], { key: (row) => row.similar });
  const single = new Table("Dead letters of one reason", [
    { title: "Job", class: "mono", fill: (cell, row) => cell.firstChild ?? cell.append(box(row), " ", link(row.job_id ?? row.id, `#/jobs/${key(row.url)}`, "The letter that holds the job")) },
    { title: "Worker", minor: true, text: (row) => row.worker ?? "" },
    { title: "Failed", num: true, text: (row) => (row.failed_at_s ? distance(row.failed_at_s * 1000) : "") },
  ], { key: (row) => row.id });
  const ofChosen = app.writes && [
    button("Requeue selected…", () => requeue({ ids: [...chosen] }, chosen.size), { class: "small" }),
    button("Drop selected…", () => drop({ ids: [...chosen] }, chosen.size), { class: "small danger" }),
  ];
  const heading = h("h3", {});
  const list = h("section", { "aria-label": "Letters of one reason" }, h("div", { class: "bar" }, heading, h("div", { class: "end" }, ofChosen)), single.node);
  const more = h("p", { class: "body soft" });
  const none = empty("No dead letters", "Jobs come here when workers have given up on them.");
  const search = h("input", { type: "search", placeholder: "Reason, ID, worker, arguments", "aria-label": "Text in dead letters", autocomplete: "off", maxlength: 80, oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(() => { words = search.value.trim(); opened = null; look(); }, PAUSE_MS);
  } });
  const everything = app.writes && [
    button("Requeue all…", () => requeue(wanted(), matched), { class: "small" }),
    button("Drop all…", () => drop(wanted(), matched), { class: "small danger" }),
  ];
  const node = card("Dead letters", [search, everything].flat().filter(Boolean), progress, groups.node, list, more, none);
  progress.hidden = groups.node.hidden = more.hidden = list.hidden = search.hidden = true;
  for (const one of everything || []) one.hidden = true;

  /** All letters, or all that match. */
  const wanted = () => (words ? { matching: words } : { all: true });

  function box(row) {
    return app.writes && h("input", { type: "checkbox", "aria-label": `Select ${row.job_id ?? row.id}`, checked: chosen.has(row.id), onchange: (event) => {
      if (event.target.checked) chosen.add(row.id);
      else chosen.delete(row.id);
      showChosen();
    } });
  }

  function showChosen() {
    for (const one of ofChosen || []) one.disabled = !chosen.size;
  }

  function some(cell, row) {
    renew(cell, ...row.letters.slice(0, 2).flatMap((one) => [link(one.job_id ?? one.id, `#/jobs/${key(one.url)}`, "The letter that holds the job"), h("br")]).slice(0, -1));
  }

  function last(cell, row) {
    const times = row.letters.map((one) => one.failed_at_s).filter(Boolean);
    const ms = Math.max(...times) * 1000;
    put(cell, times.length ? distance(ms) : "");
    if (times.length) cell.title = moment(ms);
  }

  function actions(cell, row, isNew) {
    cell.row = row;
    const choice = { similar: row.similar };
    if (isNew) cell.append(button("Show", () => open(cell.row), { class: "small", "aria-label": `Show: ${row.reason}` }));
    if (isNew && app.writes) cell.append(" ",
      button("Requeue…", () => requeue(choice, cell.row.count), { class: "small", "aria-label": `Requeue: ${row.reason}` }), " ",
      button("Drop…", () => drop(choice, cell.row.count), { class: "small danger", "aria-label": `Drop: ${row.reason}` }));
    // Of a group that is only partly shown, no button is about the whole.
    [...cell.querySelectorAll("button")].slice(1).forEach((one) => { one.hidden = words !== ""; });
  }

  function open(row) {
    opened = opened === row?.similar ? null : row.similar;
    chosen.clear();
    showOpened(opened === null ? [] : [row]);
  }

  function showOpened(rows) {
    const row = rows.find((one) => one.similar === opened);
    list.hidden = !row;
    if (!row) return;
    const known = new Set(row.letters.map((one) => one.id));
    for (const id of chosen) if (!known.has(id)) chosen.delete(id);
    put(heading, row.count > row.letters.length ? `${row.reason}: the first ${count(row.letters.length)} of ${count(row.count)}` : row.reason);
    single.update(row.letters);
    showChosen();
  }

  /** Which letters a choice is about, in words. */
  function which(choice) {
    if (choice.all) return "Of all reasons.";
    if (choice.ids) return "Those that are selected.";
    return choice.matching ? `Those with “${choice.matching}” in them.` : `Reason: ${choice.similar || "(none given)"}.`;
  }

  async function requeue(choice, expected) {
    const when = await askWhen(`Requeue ${many(expected, "job")}?`, `${which(choice)} ${expected === 1 ? "It becomes a job" : "They become jobs"} of ${plain(name)} again, ${where()}.`, "Requeue");
    if (when) await run("requeue", { ...choice, ...when }, expected);
  }

  async function drop(choice, expected) {
    const sure = await confirm(`Drop ${many(expected, "dead letter")} of ${plain(name)}?`, `${which(choice)} ${expected === 1 ? "It is" : "They are"} ${where()}. The jobs in them are lost; for ten seconds you can undo it.`, "Drop");
    if (sure && await undoable(`${many(expected, "dead letter")} of ${plain(name)} will be dropped`)) await run("drop", choice, expected);
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
        const place = choice.per_minute ? { first: done } : {};
        const answer = await post(scoped(path(verb)), { ...choice, ...place, limit: Math.min(BATCH, expected - done) });
        done += answer.count;
        if (answer.failed_count) failed = answer.failed[0];
        if (!answer.count) break;
      }
      if (failed) throw { title: `${many(done, "job")} done, then it failed`, detail: failed.detail };
    }, () => `${many(done, "job")} ${verb === "requeue" ? "requeued" : "dropped"}${stopped ? ", then stopped" : ""}.`);
    progress.hidden = true;
    busy = false;
    chosen.clear();
    await look();
  }

  async function look(signal) {
    try {
      await refresh(signal);
    } catch (error) {
      app.problem(error, true);
    }
  }

  async function refresh(signal) {
    const answer = await get(scoped(path(), { by: "similar", matching: words }), signal);
    [total, matched] = [answer.total, words ? answer.matched : answer.total];
    groups.update(answer.reasons);
    showOpened(answer.reasons);
    const listed = answer.reasons.reduce((sum, row) => sum + row.count, 0);
    const unlisted = answer.groups - answer.reasons.length;
    const hints = [
      words && `${many(matched, "letter")} of ${count(total)} ${matched === 1 ? "has" : "have"} “${words}” in ${matched === 1 ? "it" : "them"}.`,
      unlisted > 0 && `${many(unlisted, "more reason")} with ${many(answer.matched - listed, "job")} ${unlisted === 1 ? "is" : "are"} not listed.`,
      answer.truncated && `Of ${many(total, "dead letter")} the oldest ${count(answer.read)} were read: reasons of the others are not counted.`,
    ].filter(Boolean);
    put(more, hints.join(" "));
    more.hidden = !hints.length;
    none.hidden = total > 0;
    search.hidden = groups.node.hidden = total === 0;
    for (const one of everything || []) one.hidden = matched === 0;
  }
  return { node, refresh, end: () => { stopped = true; clearTimeout(timer); } };
}
