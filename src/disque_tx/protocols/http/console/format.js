// Values as people read them. Every number gets its unit here or in the heading of its column.

// Numbers and dates are written as in the language of the browser; words are English.
const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat(undefined, { style: "percent" });
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const hours = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** A whole number. The API sends those that JavaScript would round as strings: they stay exact. */
export function count(value) {
  if (typeof value === "string" && /^-?\d+$/.test(value)) return whole.format(BigInt(value));
  return whole.format(Math.round(Number(value) || 0));
}

/** A fraction of 1, in percent. */
export function share(value) {
  return percent.format(Math.min(1, Math.max(0, Number(value) || 0)));
}

/** A number with a noun, such as "1 job" and "3 jobs". */
export function many(value, noun) {
  return `${count(value)} ${noun}${Number(value) === 1 ? "" : "s"}`;
}

/** A number of at most three digits of precision. */
export function real(value) {
  const number = Number(value) || 0;
  return Math.abs(number) >= 100 ? whole.format(Math.round(number)) : short.format(number);
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Number and unit of a size. */
export function size(value) {
  let number = Number(value) || 0;
  let step = 0;
  while (number >= 1024 && step < BYTES.length - 1) {
    number /= 1024;
    step += 1;
  }
  return [real(number), BYTES[step]];
}

export function bytes(value) {
  return size(value).join(" ");
}

/** A duration in its two greatest units. */
export function duration(seconds) {
  const value = Number(seconds) || 0;
  if (value === 0) return "0 s";
  if (value < 1) return `${real(value * 1000)} ms`;
  if (value < 60) return `${real(value)} s`;
  const parts = [];
  let rest = Math.round(value);
  for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
    const units = Math.floor(rest / length);
    rest -= units * length;
    if (units) parts.push(`${count(units)} ${unit}`);
  }
  return parts.slice(0, 2).join(" ");
}

export function moment(ms) {
  return clock.format(new Date(ms));
}

/** The same in the zone of somebody else; empty where that is the same, or the browser does not know the zone. */
export function momentIn(ms, zone) {
  try {
    const there = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: zone }).format(new Date(ms));
    return there === moment(ms) ? "" : there;
  } catch {
    return "";
  }
}

export function hour(ms) {
  return hours.format(new Date(ms));
}

/** A moment at the foot of a chart that shows so many seconds. */
export function axis(ms, window_s) {
  if (window_s > 86400) return days.format(new Date(ms));
  return window_s > 3600 ? minutes.format(new Date(ms)) : hour(ms);
}

/** How far a moment is from now, such as "in 3 min" or "5 s ago". */
export function distance(ms) {
  const seconds = Math.round((ms - Date.now()) / 1000);
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

/** The state of a job in the words of the pages. */
export function stateText(row) {
  if (row.state === undefined) return "queued";
  if (row.state !== "active") return row.state;
  return row.next_requeue_within === null ? "in flight, delivered once" : `queued ${distance(Date.now() + row.next_requeue_within)}`;
}

/** A text of limited length on one line. */
export function preview(text, most = 160) {
  const line = text.slice(0, most + 1).replace(/\s+/g, " ");
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** The bytes of a body that the API sent as text or as Base64. */
export function bodyBytes(job) {
  if (job.body_base64 === undefined) return new TextEncoder().encode(job.body ?? "");
  return Uint8Array.from(atob(job.body_base64), (letter) => letter.charCodeAt(0));
}

/** Offsets, bytes and letters, sixteen bytes per line. */
export function hex(data, most = 16384) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, most); at += 16) {
    const part = Array.from(data.slice(at, at + 16));
    const numbers = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${numbers.padEnd(47)}  ${letters}`);
  }
  if (data.length > most) lines.push(`… ${many(data.length - most, "more byte")}`);
  return lines.join("\n");
}
