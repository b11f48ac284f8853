// What is wrong now: each with where, since when, and what to do.

import { h, renew } from "/console/dom.js";
import { distance, many, moment } from "/console/format.js";

const SHOWN = 8;
const KINDS = { problem: ["bad", "Problem"], note: ["warn", "Note"] };

function when(since_s) {
  return since_s ? h("time", { class: "soft", title: moment(since_s * 1000) }, `since ${distance(since_s * 1000).replace(" ago", "")}`) : null;
}

function line(one) {
  const [kind, word] = KINDS[one.severity] ?? KINDS.note;
  const place = one.node === "cluster" ? "" : `${one.node} `;
  const what = `${place}${one.what}`;
  return h("li", {}, h("span", { class: `badge ${kind}` }, word), h("div", {},
    h("b", {}, one.link ? h("a", { href: one.link }, what) : what), " ", when(one.since_s), h("p", { class: "soft" }, one.advice)));
}

export class Findings {
  constructor() {
    this.list = h("ol", { class: "findings" });
    this.well = h("p", { class: "well", hidden: true }, "All is well.");
    this.node = h("section", { class: "card", "aria-label": "What is wrong now" }, this.well, this.list);
  }

  show(findings) {
    this.well.hidden = findings.length > 0;
    const more = findings.length - SHOWN;
    renew(this.list, ...findings.slice(0, SHOWN).map(line), ...(more > 0 ? [h("li", { class: "soft" }, `and ${many(more, "more finding")}: disque doctor lists all of them`)] : []));
  }
}
