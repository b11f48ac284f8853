// When jobs are queued again: now, later, or spread over a time.

import { confirm } from "/console/dialog.js";
import { h } from "/console/dom.js";

const PER_MINUTE = 1000;
const LATER_MIN = 10;

/** A choice with a number in it. */
function choice(value, before, number, after, chosen) {
  const radio = h("input", { type: "radio", name: "when", value, checked: chosen });
  return h("label", { class: "check" }, radio, h("span", {}, before, number && " ", number, number && " ", after));
}

/** Ask before jobs are queued again. Resolves to the members of a request that say when, or to `null`. */
export async function askWhen(title, text, verb) {
  const later = h("input", { type: "number", min: 1, max: 525600, value: LATER_MIN, "aria-label": "Minutes until the jobs are queued" });
  const rate = h("input", { type: "number", min: 1, max: 1000000, value: PER_MINUTE, "aria-label": "Jobs per minute" });
  const fields = h("fieldset", { class: "when" }, h("legend", {}, "When"), choice("now", "Now", null, "", true),
    choice("later", "In", later, "minutes"), choice("spread", "Spread:", rate, "jobs per minute"));
  for (const [input, value] of [[later, "later"], [rate, "spread"]]) {
    input.addEventListener("input", () => { fields.querySelector(`[value=${value}]`).checked = true; });
  }
  const sure = await confirm(title, text, verb, { safe: true, extra: [fields] });
  if (!sure) return null;
  const chosen = fields.querySelector(":checked").value;
  if (chosen === "later") return { delay_s: Math.max(1, Math.round(Number(later.value) || LATER_MIN)) * 60 };
  return chosen === "spread" ? { per_minute: Math.max(1, Math.round(Number(rate.value) || PER_MINUTE)) } : {};
}
