// How far a job is, as its worker reports it.

import { h } from "/console/dom.js";
import { duration, share } from "/console/format.js";

/** A bar, with the note of the worker, and the age of the report, if it is given. `fraction`: from 0 to 1. */
export function progress(fraction, note, age_s) {
  const text = `${share(fraction)}${note ? `: ${note}` : ""}`;
  return h("div", { class: "progress" }, h("progress", { max: 1, value: fraction, "aria-label": "Progress" }), h("span", {}, text),
    age_s !== undefined && h("span", { class: "soft" }, `${duration(Math.round(age_s))} ago`));
}
