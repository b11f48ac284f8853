// What a job asks for, and how it failed: its task and arguments, its attempts, and its traceback.

import { get, scoped } from "/console/api.js";
import { card, h, put, renew } from "/console/dom.js";
import { distance, moment } from "/console/format.js";

const NAMES = { celery: "Celery", dramatiq: "dramatiq", django: "Django", task: "a worker of Disque", pickle: "a pickle", msgpack: "MessagePack" };
const LIBRARY = /[/\\](site-packages|dist-packages|lib[/\\]python[\d.]*)[/\\]|<frozen |<string>/;
const FRAME = /^ {2}File "/;

/** The frames of a traceback: the lines of each, and whether they are of a library. */
function frames(text) {
  const found = [];
  for (const line of text.split("\n")) {
    if (FRAME.test(line) || !found.length || !line.startsWith("    ")) {
      const library = FRAME.test(line) && LIBRARY.test(line);
      const last = found.at(-1);
      if (last && last.library && library) last.lines.push(line);
      else found.push({ library, lines: [line] });
    } else {
      found.at(-1).lines.push(line);
    }
  }
  return found;
}

/** A traceback with one's own code apart: frames of libraries are folded together. */
function traceback(text) {
  return h("div", { class: "trace" }, frames(text.trimEnd()).map(({ library, lines }) => {
    const code = h("pre", { class: library ? "soft" : "" }, lines.join("\n"));
    const count = lines.filter((line) => FRAME.test(line)).length;
    return library ? h("details", {}, h("summary", { class: "soft" }, `${count} ${count === 1 ? "frame" : "frames"} of libraries`), code) : code;
  }));
}

const written = (value) => JSON.stringify(value, null, 2);

export class Call {
  constructor(path) {
    this.path = path;
    this.facts = h("dl", { class: "facts" });
    this.listing = h("pre", { class: "body", tabindex: "0", "aria-label": "Opcodes of the pickle" });
    this.task = card("Task", null, h("div", { class: "body" }, this.facts), this.listing);
    this.attempts = h("ol", { class: "line" });
    this.trace = h("div", { class: "body" });
    this.failure = card("How it failed", null, h("div", { class: "body" }, this.attempts), this.trace);
    this.node = h("div", { class: "page" }, this.task, this.failure);
    this.task.hidden = this.failure.hidden = true;
    this.made = null;
  }

  /** `job`: as it is shown; `letter`: the dead letter in it, or `null`. */
  async refresh(job, letter, signal) {
    const body = job.body ?? job.body_base64 ?? "";
    if (body === this.made) return;
    const found = await get(scoped(`${this.path}/arguments`), signal);
    this.made = body;
    const rows = [
      ["Task", found.task],
      ["Written by", NAMES[found.envelope]],
      ["Arguments", found.args?.length ? h("pre", {}, written(found.args)) : found.task && "none"],
      ["By name", Object.keys(found.kwargs ?? {}).length ? h("pre", {}, written(found.kwargs)) : null],
      ["Value", found.value === undefined ? null : h("pre", {}, written(found.value))],
      ["Options", Object.keys(found.options ?? {}).length ? h("details", {}, h("summary", {}, "Show"), h("pre", {}, written(found.options))) : null],
      ["Trace", found.trace_id && (found.trace_url ? h("a", { href: found.trace_url, rel: "noreferrer" }, found.trace_id) : found.trace_id)],
    ].filter(([, value]) => value);
    this.facts.replaceChildren(...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    this.task.hidden = !rows.length;
    this.listing.hidden = !found.opcodes?.length;
    put(this.listing, found.opcodes?.length ? `This pickle is only listed, not read:\n${found.opcodes.join("\n")}` : "");
    this.failure.hidden = !letter;
    if (letter) this.showFailure(letter);
  }

  showFailure(letter) {
    const history = Array.isArray(letter.history) ? letter.history : [];
    const last = { at_s: letter.failed_at_s, reason: letter.reason, worker: letter.worker };
    const known = history.filter((one) => one && (one.at_s !== last.at_s || one.reason !== last.reason));
    const unknown = Math.max(0, Number(letter.nacks) + Number(letter.additional_deliveries) - known.length - 1);
    const line = (one) => h("li", { class: "warn" }, `${one.reason || "no reason given"}${one.worker ? `, at ${one.worker}` : ""}`,
      one.at_s ? h("time", { title: moment(one.at_s * 1000) }, distance(one.at_s * 1000)) : null);
    renew(this.attempts, ...(unknown ? [h("li", { class: "soft" }, `${unknown} earlier ${unknown === 1 ? "attempt" : "attempts"} of which nothing more is known`)] : []), ...known.map(line), line(last));
    this.trace.hidden = !letter.traceback;
    this.trace.replaceChildren(...(letter.traceback ? [traceback(String(letter.traceback))] : []));
  }
}
