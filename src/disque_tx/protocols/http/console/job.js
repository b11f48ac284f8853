// One job: its body, its life, and what can be done with it.

import { at, get, plain, post, query, remove, scope, scoped, segment } from "/console/api.js";
import { known as cluster, name as nodeName } from "/console/cluster.js";
import { Call } from "/console/call.js";
import { confirm } from "/console/dialog.js";
import { button, card, empty, h, put, renew, segments } from "/console/dom.js";
import { bodyBytes, bytes, count, distance, duration, hex, hour, many, moment } from "/console/format.js";
import { progress } from "/console/progress.js";
import { link } from "/console/table.js";
import { undoable } from "/console/undo.js";

const TEXTS = {
  added: "Added", replicated: "Copied to other nodes", queued: "Queued", requeued: "Queued again", delivered: "Delivered to a worker",
  working: "The worker needs more time", acked: "Acknowledged: done", "fast-acked": "Acknowledged: done", nacked: "Returned by the worker", expired: "Expired",
  evicted: "Deleted to make room", deleted: "Deleted", imported: "Came from another node", exported: "Went to another node",
  flushed: "Ended by a flush", delayed: "Held back until the next attempt", dead: "Became a dead letter", dropped: "Dropped", moved: "Moved to another queue",
};
const BAD = new Set(["nacked", "expired", "evicted", "dead", "dropped"]);
const SIGNS = { queued: "accent", active: "good", acked: "", "wait-repl": "warn" };
const JSON_MAX = 262144;
const EVENTS_MAX = 200;
const HOLDERS_SHOWN = 5;
/** Workers that are looked through for the one that has a job. */
const MOST = 1000;

/** The dead letter in a body; `null` if it is another job. */
function letterIn(body) {
  if (!body?.startsWith('{"version":') || body.length > JSON_MAX) return null;
  try {
    const values = JSON.parse(body);
    return ["queue", "id", "body", "reason"].every((name) => typeof values[name] === "string") ? values : null;
  } catch {
    return null;
  }
}

/** The body of the job in a letter, if it is JSON; otherwise `null`. */
function inside(letter) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(letter.body), (one) => one.charCodeAt(0)));
    JSON.parse(text);
    return text;
  } catch {
    return null;
  }
}

/** What a dead letter is about: the task in its job, or the job. */
function dead(letter) {
  const task = JSON.parse(inside(letter) ?? "null")?.task;
  return typeof task === "string" ? `Its task, ${task},` : `Its job, ${letter.id},`;
}

/** How many nodes know the job, of those that were asked for, and which. */
function copies({ repl, holders, nodes_delivered: sent }) {
  const wanted = `${count(repl)} asked for`;
  const there = holders?.length ?? 0;
  const names = (holders ?? []).slice(0, HOLDERS_SHOWN).map(nodeName).join(", ");
  if (there) return `${wanted}, ${count(there)} ${there === 1 ? "node has" : "nodes have"} it: ${names}${there > HOLDERS_SHOWN ? ", …" : ""}`;
  return sent?.length ? `${wanted}, sent to ${many(sent.length, "node")}` : wanted;
}

/** When a job with a DELAY is queued: ms since 1970. */
const due = (job) => Number(BigInt(job.ctime) / 1000000n) + job.delay * 1000;

/** The state of a job in a word or two. */
function word(job) {
  if (job.state !== "active") return job.state;
  if (job.place === "backoff") return "in backoff";
  return job.place === "delayed" || (job.delay && due(job) > Date.now()) ? "delayed" : "in flight";
}

/** Where a job is that was delivered, as far as its node knows. `worker`: who says that it works on it. */
function whereabouts(job, worker) {
  if (job.place === "backoff") return "Failed, and waits for its next attempt";
  if (job.place === "loaded" || job.place === "resuming") return "From the log of a node that was started again";
  const age = job.place === "in-flight" ? ` for ${duration(Math.round(job.place_age / 1000))}` : "";
  if (worker || age) return `In flight at ${worker ? `worker ${worker}` : "a client"}${age}`;
  return job.nacks ? "In flight, or waiting for its next attempt" : "In flight at a client";
}

/** Where a job is, and what happens next, in a sentence. */
function status(job, worker) {
  const again = job.next_requeue_within > 0 ? Date.now() + job.next_requeue_within : 0;
  const letter = letterIn(job.body);
  if (letter) return `A dead letter: a job of ${letter.queue} failed for good ("${letter.reason || "no reason given"}"). It waits to be requeued or dropped, and is lost ${distance(Date.now() + job.ttl * 1000)}.`;
  if (job.state === "queued") return `Waits in ${job.queue}: the next worker that asks for this queue gets it when its turn comes.`;
  if (job.state === "acked") return "Done. It is kept until all nodes that have copies know that.";
  if (job.state === "wait-repl") return "Waits for its copies at other nodes; then it is queued.";
  if (word(job) === "delayed") return `Delayed: queued ${distance(due(job))}, at ${hour(due(job))}.`;
  if (!job.retry) return "Was delivered, and is not delivered again: its RETRY is 0.";
  const held = whereabouts(job, worker);
  if (!again) return `${held}.`;
  const when = `${hour(again)} (${distance(again)})`;
  return word(job) === "in backoff" ? `${held}: queued again at ${when}.` : `${held}; delivered again at ${when} unless it is acknowledged.`;
}

/** A pattern that matches this text only. */
function literally(text) {
  return text.replace(/[*?[]/g, "[$&]");
}

export default function job(app, id) {
  const path = at("jobs", id);
  const known = plain(id);
  let [shown, letter, form, events, stream, source, from, past, recalled, settled, worker] = [null, null, null, [], "", null, "", null, null, false, ""];
  const badge = h("span", { class: "badge" });
  const crumb = h("span", {});
  const facts = h("dl", { class: "facts" });
  const line = h("ol", { class: "line" });
  const note = h("p", { class: "soft" });
  const sentence = h("p", { class: "status", role: "status" });
  const text = h("pre", { class: "body", tabindex: "0", "aria-label": "Body of the job" });
  const size = h("span", { class: "soft" });
  const forms = h("div", {});
  const call = new Call(path);
  const ofJob = [
    button("Queue now", () => act("enqueue", "The job is queued.")),
    button("Dequeue", () => act("dequeue", "The job is not queued, until its RETRY.")),
    button("Acknowledge…", acknowledge, { class: "danger" }),
    button("Delete…", erase, { class: "danger" }),
  ];
  const ofLetter = [
    button("Requeue", () => requeue({})),
    button("Edit and requeue…", edit),
    button("Drop…", drop, { class: "danger" }),
  ];
  const content = h("div", { class: "page" }, sentence,
    h("div", { class: "grid2" }, card("Facts", null, h("div", { class: "body" }, facts)), card("Timeline", null, h("div", { class: "body" }, line, note))),
    call.node, card("Body", [size, forms], text));
  const gone = h("section", { class: "card" }, empty(scope.everywhere ? "No node knows the job" : "This node does not know the job", scope.everywhere ? "It has ended, or a node that has it does not answer. With the event log on, its life can be looked up there." : "It has ended, or other nodes hold it. With the event log on, its life can be looked up there.", "disque config set eventlog yes"));
  const end = h("div", { class: "end" });
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("a", { href: "#/queues" }, "Queues"), crumb, h("span", { class: "soft" }, "/"), h("h1", { class: "mono" }, known), badge, end), content, gone);
  gone.hidden = content.hidden = true;

  /** The job that is shown, whatever the address says. */
  function shownAt(...rest) {
    return at("jobs", segment(shown.id), ...rest);
  }

  function act(verb, done) {
    return app.act(() => post(scoped(shownAt(verb))), done);
  }

  async function acknowledge() {
    const sure = await confirm(`End this job of ${shown.queue}?`, `${shown.id} ends on all nodes, as if a worker had done it. This cannot be undone.`, "Acknowledge");
    if (sure) await act("ack", "The job is done.");
  }

  async function erase() {
    const sure = await confirm(`Delete this job of ${shown.queue}?`, `${shown.id} is deleted ${scope.everywhere ? "from all nodes that answer, and lost" : "from this node, and lost if no other node has a copy"}.`, "Delete");
    if (sure) await app.act(() => remove(scoped(shownAt())), scope.everywhere ? "The job is deleted." : "The job is deleted from this node.");
  }

  function requeue(members) {
    const { queue } = letter;
    return app.act(async () => {
      const answer = await post(scoped(at("queues", segment(queue), "dead-letters", "requeue")), { ids: [shown.id], ...members });
      if (answer.failed_count) throw { title: "It was not requeued", detail: answer.failed[0].detail };
      if (!answer.count) throw { title: "It was not requeued", detail: "The letter is not in the queue for dead letters of its job any more, or a node does not answer." };
    }, `The job is in ${queue} again.`);
  }

  /** The arguments may be wrong where the job is right: they are sent as they are written here. */
  async function edit() {
    const field = h("textarea", { rows: 12, spellcheck: "false", "aria-label": "Body of the job" });
    field.value = inside(letter);
    const wrong = () => {
      try {
        JSON.parse(field.value);
        return "";
      } catch (error) {
        return `This is not JSON: ${error.message}`;
      }
    };
    field.addEventListener("input", () => field.setCustomValidity(wrong()));
    const sure = await confirm(`Requeue the job with another body?`, `It becomes a new job of ${letter.queue}; the letter is dropped.`, "Requeue", { safe: true, extra: [field] });
    if (sure) await requeue({ body: field.value });
  }

  async function drop() {
    const sure = await confirm(`Drop this dead letter of ${letter.queue}?`, `${dead(letter)} is lost on all nodes; for ten seconds you can undo it.`, "Drop");
    if (sure && await undoable(`A dead letter of ${letter.queue} will be dropped`)) await act("ack", "The dead letter is dropped.");
  }

  function show(values) {
    const queue = values.queue ?? "";
    letter = letterIn(values.body);
    const choices = !app.writes ? [] : letter ? ofLetter : ofJob;
    ofLetter[1].hidden = !letter || inside(letter) === null;
    put(sentence, status(values, worker));
    if (end.firstChild !== (choices[0] ?? null)) end.replaceChildren(...choices);
    badge.className = `badge ${SIGNS[values.state] ?? ""}`;
    put(badge, word(values));
    if (queue && crumb.textContent === "") crumb.append("/\u00a0\u00a0", link(queue, `#/queues/${segment(queue)}`));
    const rows = [
      ["Queue", queue && link(queue, `#/queues/${segment(queue)}`)],
      ...(values.progress === undefined ? [] : [["Progress", progress(values.progress, values.progress_note, values.progress_age / 1000)]]),
      ["Created", moment(Number(BigInt(values.ctime) / 1000000n))],
      ["Expires in", duration(values.ttl)],
      ["Delivered again after", values.retry ? `${duration(values.retry)} without acknowledgement` : "never (at most once)"],
      ["Delay", duration(values.delay)],
      ["Copies", copies(values)],
      ["Node", values.node ? nodeName(values.node) : "this one"],
      ["Returned by workers", many(values.nacks, "time")],
      ["Delivered again", many(values.additional_deliveries, "time")],
    ];
    renew(facts, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  function life(values) {
    const points = values.ctime ? [[Number(BigInt(values.ctime) / 1000000n), "Created", ""]] : [];
    // What happened while the log was read may be in both.
    const live = new Set(events.map((event) => `${event.kind} ${BigInt(event.at_us) / 1000n}`));
    for (const event of past?.events ?? []) {
      const ms = Date.parse(event.time);
      if (live.has(`${event.kind} ${ms}`)) continue;
      const took = event.wait_ms ?? event.run_ms;
      const why = [event.reason, event.note].filter(Boolean).join(": ");
      points.push([ms, `${TEXTS[event.kind] ?? event.kind}${took === undefined ? "" : ` after ${duration(took / 1000)}`}${why ? ` (${why})` : ""}`, BAD.has(event.kind) ? "warn" : ""]);
    }
    for (const event of events) {
      const took = event.elapsed_ms === undefined ? "" : ` after ${duration(event.elapsed_ms / 1000)}`;
      points.push([Number(BigInt(event.at_us) / 1000n), `${TEXTS[event.kind] ?? event.kind}${took}${event.reason ? ` (${event.reason})` : ""}`, BAD.has(event.kind) ? "warn" : ""]);
    }
    if (values.next_requeue_within > 0 && values.state === "active") points.push([Date.now() + values.next_requeue_within, "Queued again unless acknowledged", "later"]);
    if (values.state !== "acked") points.push([Date.now() + values.ttl * 1000, "Expires", "later"]);
    renew(line, ...points.map(([ms, what, kind]) => h("li", { class: kind }, what, h("time", { title: moment(ms) }, kind === "later" ? distance(ms) : `${hour(ms)}, ${distance(ms)}`))));
    const elsewhere = shown?.node && shown.node !== cluster.me;
    const logged = !past ? "" : past.log ? (past.complete ? "The past is from the event logs." : "Only a part of the event logs could be looked at.") : "The event log is off: what happened before is not known.";
    put(note, elsewhere ? `The job is at another node, ${nodeName(shown.node)}: what happens from now on is shown there as it happens. ${logged}`.trim() : `${logged} ${stream}`.trim());
  }

  function body(values) {
    const data = bodyBytes(values);
    let value;
    try {
      if (values.body && data.length <= JSON_MAX) value = JSON.stringify(JSON.parse(values.body), null, 2);
    } catch {
      value = undefined;
    }
    const choices = [["text", "Text", values.body], ["json", "JSON", value], ["hex", "Hex", hex(data)]].filter(([, , shown_]) => shown_ !== undefined && shown_ !== null);
    if (form === null) form = value !== undefined && /^\s*[[{]/.test(values.body) ? "json" : choices[0][0];
    const choose = (name) => {
      form = name;
      put(text, choices.find(([word]) => word === name)[2]);
      text.classList.toggle("hex", name === "hex");
    };
    const made = `${data.length} ${values.body ?? values.body_base64}`;
    if (made === from) return;
    from = made;
    put(size, bytes(data.length));
    forms.replaceChildren(segments("Form of the body", choices, form, choose));
    choose(form);
  }

  /** Events before one looked. Those that happen from then on come by watch(), unless the job is at another node.
   *  They are asked for twice, because the latest ones are not in the log at once. */
  async function recall(signal) {
    const now = shown?.node && shown.node !== cluster.me ? [shown.state, shown.place, shown.nacks, shown.additional_deliveries].join() : "";
    if (past && now === recalled && settled) return;
    settled = now === recalled;
    recalled = now;
    try {
      past = await get(scoped(`${path}/events`), signal);
    } catch (error) {
      if (signal?.aborted || error.code !== "TRYLATER") throw error;
    }
  }

  /** Events that happen while one looks. */
  function watch(queue) {
    if (source || document.hidden) return;
    source = new EventSource(query(at("events"), { queue: literally(queue) }));
    source.onopen = () => { stream = "What happens from now on is shown here as it happens."; };
    source.onerror = () => { stream = "Events as they happen are not available at the moment."; };
    source.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      if (event.id !== known) return;
      events = [...events, event].slice(-EVENTS_MAX);
      app.refresh();
    };
  }

  function unwatch() {
    source?.close();
    source = null;
  }

  /** Who says that it works on the job; empty if nobody does. */
  async function holder(signal) {
    if (shown.state !== "active" || word(shown) !== "in flight") return "";
    const { workers } = await get(scoped(at("workers"), { limit: MOST }), signal);
    return workers.find((one) => one.jobs.some((work) => work.id === known))?.worker ?? "";
  }

  async function refresh(signal) {
    try {
      shown = await get(scoped(path), signal);
    } catch (error) {
      if (error.code !== "NOJOB") throw error;
      gone.hidden = false;
      end.hidden = badge.hidden = true;
      await recall(signal);
      content.hidden = shown === null && !past?.events.length;
      life({ ...(shown ?? {}), state: "acked" });
      return;
    }
    gone.hidden = true;
    content.hidden = end.hidden = badge.hidden = false;
    if (shown.queue) watch(shown.queue);
    worker = await holder(signal);
    await recall(signal);
    show(shown);
    life(shown);
    body(shown);
    await call.refresh(shown, letter, signal);
  }
  return { title: known, node, refresh, every_s: 3, end: unwatch, hidden: (is) => is && unwatch() };
}
