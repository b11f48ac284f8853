// Charts of what happened, of all queues or of one, with what may be the reason.

import { get, scoped } from "/console/api.js";
import { BYTES, LineChart, SECONDS } from "/console/charts.js";
import { name } from "/console/cluster.js";
import { h, renew, segments } from "/console/dom.js";
import { bytes, distance, duration, moment, real } from "/console/format.js";

const SPANS = [["15m", "15 min"], ["1h", "1 h"], ["24h", "24 h"], ["14d", "14 d"]];
const LIVE = new Set(["15m", "1h"]);
const REST_MS = 60000;
const LISTED = 12;
const KINDS = { restart: "Restart", policy: "Policy", pause: "Pause", note: "Note" };

function line(mark) {
  const by = mark.who ? ` by ${mark.who}` : "";
  return h("li", {}, h("time", { class: "soft", title: moment(mark.at_ms) }, distance(mark.at_ms)),
    h("span", { class: "badge" }, KINDS[mark.kind]), h("span", {}, `${mark.what}${by} at ${name(mark.node)}`));
}

/** `path`: of the history; `whole`: of all queues, then the memory of the nodes is shown, too. */
export class History {
  constructor(app, path, whole) {
    this.path = path;
    this.span = SPANS.some(([word]) => word === localStorage.getItem("span")) ? localStorage.getItem("span") : "1h";
    this.next_ms = 0;
    this.flow = new LineChart("Jobs/s", ["added", "delivered", "done", "failed"], real);
    this.stock = new LineChart("Jobs", ["queued", "in flight"], real, 4);
    this.waits = new LineChart("Wait in the queue", ["oldest", "99 %", "median"], duration, 0.004, SECONDS);
    this.memory = whole ? new LineChart("Memory of jobs", ["used"], bytes, 1024, BYTES) : null;
    this.charts = [this.flow, this.stock, this.waits, this.memory].filter(Boolean);
    this.choice = segments("Span of the charts", SPANS, this.span, (word) => {
      this.span = word;
      this.next_ms = 0;
      localStorage.setItem("span", word);
      app.refresh();
    });
    this.marks = h("ol", { class: "marks" });
    this.list = h("section", { class: "card", hidden: true }, h("div", { class: "bar" }, h("h2", {}, "What happened besides")), this.marks);
    this.node = h("div", { class: "page" }, h("div", { class: "grid2" }, this.charts.map((chart) => chart.node)), this.list);
  }

  /** Draw the charts; returns the samples of the last minutes, which are jobs per second, jobs, and milliseconds. */
  async refresh(signal) {
    const live = LIVE.has(this.span);
    const asked = (span) => get(scoped(this.path, { span }), signal);
    const [found, latest] = await Promise.all([Date.now() < this.next_ms ? null : asked(this.span), live ? null : asked(SPANS[0][0])]);
    if (found) this.draw(found);
    if (found) this.next_ms = live ? 0 : Date.now() + REST_MS;
    return (latest ?? found).samples;
  }

  draw({ samples, marks, span_s }) {
    const seconds = (column) => column.map((ms) => ms / 1000);
    const set = (chart, ...columns) => chart.update(samples.at_ms, columns, span_s, marks);
    set(this.flow, samples.added, samples.delivered, samples.acked, samples.failed);
    set(this.stock, samples.queued, samples.in_flight);
    set(this.waits, seconds(samples.oldest_ms), seconds(samples.wait_p99_ms), seconds(samples.wait_p50_ms));
    if (this.memory) set(this.memory, samples.memory_bytes);
    this.list.hidden = !marks.length;
    renew(this.marks, ...marks.slice(-LISTED).reverse().map(line));
  }

  end() {
    this.charts.forEach((chart) => chart.end());
  }
}
