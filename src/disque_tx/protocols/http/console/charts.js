// Charts in SVG.

import { h, put, s } from "/console/dom.js";
import { axis, hour, moment } from "/console/format.js";

const [WIDTH, HEIGHT] = [640, 190];
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 4, 10, 22];
const LINES = 4;

/** The least round number that is not below `value`; a scale that ends there has round steps. */
function round(value, least, unit) {
  if (value <= least) return least;
  const scale = unit(value);
  const power = 10 ** Math.floor(Math.log10(value / scale)) * scale;
  return [1, 2, 4, 6, 8, 10].find((step) => step * power >= value * 0.9999) * power;
}

/** The unit in which a value of this size is shown. */
export const PLAIN = () => 1;
export const SECONDS = (value) => [86400, 3600, 60].find((unit) => value >= unit) ?? 1;
export const BYTES = (value) => 1024 ** Math.max(0, Math.floor(Math.log2(value) / 10));

function path(points) {
  const line = points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return points.length === 1 ? `${line}h.1` : line;
}

/**
 * Lines over time. `series`: names; `show(value)`: a value with its unit; `least`: the end of the scale when all
 * values are below it; `unit`: gives the unit that a value is shown in. The legend shows the latest values, or those under the mouse.
 */
export class LineChart {
  constructor(title, series, show, least = 1, unit = PLAIN) {
    Object.assign(this, { title, series, show, least, unit, times: [], columns: [], marks: [], window_s: 60 });
    this.values = series.map(() => h("b", {}));
    this.when = h("i", { class: "soft" });
    this.legend = h("div", { class: "legend" }, series.map((name, at) => h("span", {}, `${name} `, this.values[at])), this.when);
    this.grid = s("g");
    this.lines = s("g");
    this.cursor = s("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.svg = s("svg", { class: "chart", role: "img", "aria-label": title, viewBox: `0 0 ${WIDTH} ${HEIGHT}` }, this.grid, this.lines, this.cursor);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.read(-1));
    this.node = h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, title), h("div", { class: "end" }, this.legend)),
      h("div", { class: "body" }, this.svg));
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.svg);
  }

  /** `times`: in ms; `columns`: the values of each series at these times; `marks`: moments with a `kind`, and `what` happened. */
  update(times, columns, window_s, marks) {
    Object.assign(this, { times, columns, window_s, marks });
    this.draw();
    this.read(-1);
  }

  draw() {
    const width = this.svg.clientWidth || WIDTH;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const top = round(Math.max(0, ...this.columns.flat()), this.least, this.unit);
    const end = this.times.at(-1) ?? Date.now();
    const begin = end - this.window_s * 1000;
    this.x = (ms) => LEFT + (Math.min(ms - begin, end - begin) / (end - begin)) * (width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
    const levels = Array.from({ length: LINES + 1 }, (_, at) => (top * at) / LINES);
    const moments = [0, 1 / 3, 2 / 3, 1].map((part) => begin + part * (end - begin));
    this.grid.replaceChildren(
      ...levels.flatMap((level) => [
        s("line", { class: "gridline", x1: LEFT, x2: width - RIGHT, y1: y(level), y2: y(level) }),
        s("text", { x: LEFT - 8, y: y(level) + 4, "text-anchor": "end" }, this.show(level)),
      ]),
      ...moments.map((ms, at) =>
        s("text", { x: this.x(ms), y: HEIGHT - 4, "text-anchor": ["start", "middle", "middle", "end"][at] }, axis(ms, this.window_s))),
      ...this.marks.filter((mark) => mark.at_ms > begin).map((mark) =>
        s("line", { class: `mark ${mark.kind}`, x1: this.x(mark.at_ms), x2: this.x(mark.at_ms), y1: TOP, y2: HEIGHT - BOTTOM },
          s("title", {}, `${moment(mark.at_ms)}: ${mark.what}`))),
    );
    const drawn = this.columns.map((values) => values.map((value, at) => [this.x(this.times[at]), y(value)]));
    const area = drawn[0]?.length > 1 && s("path", {
      class: "area", d: `${path(drawn[0])}L${drawn[0].at(-1)[0]} ${y(0)}L${drawn[0][0][0]} ${y(0)}Z` });
    this.lines.replaceChildren(...(area ? [area] : []), ...drawn.map((points, at) => s("path", { class: `series c${at}`, d: path(points) })).reverse());
    const latest = this.series.map((name, at) => `${name} ${this.show(this.columns[at]?.at(-1) ?? 0)}`);
    this.svg.setAttribute("aria-label", `${this.title}: now ${latest.join(", ")}; at most ${this.show(Math.max(0, ...this.columns.flat()))}`);
  }

  point(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    let nearest = -1;
    this.times.forEach((ms, at) => {
      if (nearest < 0 || Math.abs(this.x(ms) - x) < Math.abs(this.x(this.times[nearest]) - x)) nearest = at;
    });
    this.read(nearest);
  }

  read(at) {
    this.values.forEach((element, number) => put(element, this.show(this.columns[number]?.at(at) ?? 0)));
    put(this.when, at < 0 ? "" : this.window_s > 86400 ? moment(this.times[at]) : hour(this.times[at]));
    this.cursor.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    if (at >= 0) for (const name of ["x1", "x2"]) this.cursor.setAttribute(name, this.x(this.times[at]));
  }

  end() {
    this.watcher.disconnect();
  }
}

/** A line without axes. `label`: what it shows, in words. */
export function sparkline(svg, values, label) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => [(at / Math.max(1, values.length - 1)) * 96, 21 - (value / most) * 19]);
  const line = svg ?? s("svg", { class: "spark", role: "img", viewBox: "0 0 96 22" }, s("path", { class: "series c0" }));
  line.firstChild.setAttribute("d", points.length > 1 ? path(points) : "");
  line.setAttribute("aria-label", label);
  return line;
}
