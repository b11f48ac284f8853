// One queue.

import { at, counted, get, key, member, plain, post, scope, scoped, where } from "/console/api.js";
import { consumers } from "/console/consumers.js";
import { letters } from "/console/deadletters.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put, segments, tiles } from "/console/dom.js";
import { count, duration, many, preview, real, stateText } from "/console/format.js";
import { History } from "/console/history.js";
import { link, Table } from "/console/table.js";

const STATES = { none: "Nothing", in: "New jobs", out: "Deliveries", all: "Everything" };
const PEEK = 20;
const SCANS_MAX = 5;

export default function queue(app, name) {
  const path = (...rest) => at("queues", name, ...rest);
  let [title, edge, dead, rules, paused] = [plain(name), "oldest", -1, null, "none"];
  let shown = null;
  let held = { queued: 0, others: 0 };
  const heading = h("h1", {}, title);
  const badge = h("span", { class: "badge warn" });
  const figures = tiles({ queued: "Queued", in_flight: "In flight", delayed: "Delayed", backoff: "In backoff", loaded: "From the log", dead: "Dead", blocked: "Waiting clients", oldest: "Oldest waits", in: "In", out: "Out" });
  const history = new History(app, path("history"), false);
  const policy = new Table("Policy", [
    { title: "Setting", text: (row) => row.name },
    { title: "Value", text: (row) => row.value },
    { title: "Pattern", text: (row) => row.pattern },
  ], { key: (row) => row.name });
  const nopolicy = empty("No policy", "The defaults hold. Settings for all queues of a pattern:", "disque policy set 'mail:*' retry 60");
  const jobs = new Table("Jobs", [
    { title: "Job", class: "mono", fill: (cell, row) => cell.firstChild ?? cell.append(link(row.id, `#/jobs/${key(row.url)}`)) },
    { title: "State", minor: true, text: stateText },
    { title: "Body", class: "wide mono", text: (row) => preview(row.body ?? `${row.body_base64} (Base64)`) },
  ], { key: (row) => row.id });
  const nojobs = empty("No job waits here", "Jobs in flight, delayed, or in backoff are under “Not queued”. To add one:", `disque addjob ${title} 'hello' 0`);
  const which = segments("Which jobs", [["oldest", "Oldest"], ["newest", "Newest"], ["others", "Not queued"]], edge, (value) => { edge = value; app.refresh(); });
  const scanned = h("span", { class: "soft" });
  const mail = letters(app, name);
  const takers = consumers(name);
  const pausing = h("select", { id: "pausing", onchange: () => pause(pausing.value) }, Object.entries(STATES).map(([value, text]) => h("option", { value }, text)));
  const controls = app.writes && [h("label", { class: "field", title: "At every node of the cluster, also at those that join later" }, "Pause on all nodes", pausing), button("Flush…", flush, { class: "danger" })];
  const content = h("div", { class: "page" }, figures.node, history.node,
    takers.node, card("Jobs", [scanned, which], jobs.node, nojobs), mail.node, card("Policy", null, policy.node, nopolicy));
  const end = h("div", { class: "end" }, history.choice, controls);
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("a", { href: "#/queues" }, "Queues"), h("span", { class: "soft" }, "/"), heading, badge, end), content);
  badge.hidden = end.hidden = true;

  /** Jobs that are in flight, delayed or in backoff: some that are found soon among all jobs of the node. */
  async function others(signal) {
    let [found, cursor] = [[], 0];
    for (let scans = 0; scans < SCANS_MAX && cursor !== null && found.length < PEEK; scans += 1) {
      const answer = await get(scoped(path("jobs"), { state: "active", count: PEEK, cursor }), signal);
      found = found.concat(answer.jobs);
      cursor = answer.cursor;
    }
    put(scanned, cursor === null && found.length <= PEEK ? "" : "Not all are shown");
    return { jobs: found.slice(0, PEEK) };
  }

  function pause(value) {
    rules = null;
    return app.act(() => post(path("pause"), { pause: value, kept: true }), value === "none" ? "The queue goes on at all nodes." : `Paused on all nodes: ${STATES[value].toLowerCase()}.`);
  }

  /** Where the queue is paused, and by what. */
  function pausedBy() {
    const { value, pattern } = rules.settings.pause ?? { value: "none" };
    if (value === "none") return "at this node, by PAUSE";
    const everywhere = pattern === title ? "on all nodes" : `on all nodes by the policy of ${pattern}`;
    return value === paused || value === "all" ? everywhere : `${everywhere}, and at this node by PAUSE`;
  }

  async function flush() {
    const chosen = await confirm(`Flush ${title} ${where()}`, `This ends ${many(held.queued, "job")} that ${Number(held.queued) === 1 ? "is" : "are"} queued ${where()}. It cannot be undone.`, "End the jobs", {
      typed: title, checks: [`Also ${many(held.others, "job")} delayed, in backoff, in flight or from the log`] });
    if (!chosen) return;
    const states = [chosen[0] ? "any" : "queued"];
    await app.act(() => post(path("flush"), { ...member("queue", name), states, everywhere: scope.everywhere }), (done) => `${many(done.count, "job")} ended.`);
  }

  async function refresh(signal) {
    const [counts, peeked, found] = await Promise.all([
      get(counted(at("counts", name)), signal),
      edge === "others" ? others(signal) : get(scoped(path("peek"), { count: PEEK, from: edge }), signal),
      rules ? null : get(path("policy"), signal),
      history.refresh(signal),
      takers.refresh(signal),
    ]);
    end.hidden = false;
    title = counts.name;
    put(heading, title);
    page.title = title;
    const jobsOf = (value) => [count(value), Number(value) === 1 ? "job" : "jobs"];
    for (const state of ["queued", "in_flight", "delayed", "backoff", "loaded", "dead"]) figures.set(state, ...jobsOf(counts[state]));
    figures.set("blocked", count(counts.blocked_clients), counts.blocked_clients === 1 ? "client" : "clients");
    figures.set("oldest", duration(counts.oldest_ms / 1000));
    figures.set("in", real(counts.in_per_s), "jobs/s");
    figures.set("out", real(counts.out_per_s), "jobs/s");
    held = { queued: counts.queued, others: ["delayed", "backoff", "in_flight", "loaded"].reduce((total, state) => total + Number(counts[state]), 0) };
    rules = found ?? (counts.pause === paused ? rules : await get(path("policy"), signal));
    paused = counts.pause;
    badge.hidden = paused === "none";
    put(badge, `Paused ${pausedBy()}: ${STATES[paused].toLowerCase()}`);
    if (document.activeElement !== pausing) pausing.value = counts.pause;
    if (edge !== "others") put(scanned, "");
    jobs.update(peeked.jobs);
    jobs.node.hidden = !peeked.jobs.length;
    nojobs.hidden = !jobs.node.hidden;
    if (rules !== shown) {
      shown = rules;
      const rows = Object.entries(rules.settings).map(([setting, { value, pattern }]) => ({ name: setting, value, pattern }));
      policy.update(rows);
      policy.node.hidden = !rows.length;
      nopolicy.hidden = rows.length > 0;
    }
    if (counts.dead !== dead) {
      await mail.refresh(signal);
      dead = counts.dead;
    }
  }
  const page = { title, node, refresh, every_s: 3, end: () => { history.end(); mail.end(); } };
  return page;
}
