// Whether the node of this page answers, and whether it has lost another one: known within 3 s while somebody looks. The node sends an event each second; only when none comes is it asked.

import { at } from "/console/api.js";

const EVERY_MS = 1000;
const LIMIT_MS = 1400;
// While a node lets its clients wait, it says so of nothing but its health.
const PATIENCE_MS = 400;
// Without an event for so long, the node is asked. Until it has answered as often as this, no stream is opened again: a proxy may hold them back.
const SILENT_MS = 1500;
const ANSWERS = 10;

/** Look until `end`. `tell(answers)`: called when that changes; `watch(nodes)`: called every second with the nodes that it knows. */
export class Heartbeat {
  constructor(tell, watch) {
    this.tell = tell;
    this.watch = watch;
    this.answers = true;
    this.looking = false;
    this.timer = 0;
    this.turn = 0;
    this.stream = null;
    this.asked = 0;
  }

  start() {
    if (this.looking) return;
    this.looking = true;
    this.asked = 0;
    this.open(this.turn);
  }

  end() {
    this.looking = false;
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
    this.turn += 1;
  }

  /** Take events as long as they come. */
  open(turn) {
    const stream = new EventSource(at("nodes/events"));
    let nodes = null;
    const lost = () => {
      clearTimeout(this.timer);
      stream.close();
      if (turn === this.turn) this.beat(turn);
    };
    this.stream = stream;
    this.timer = setTimeout(lost, SILENT_MS);
    stream.onerror = lost;
    stream.onmessage = ({ data }) => {
      if (turn !== this.turn) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(lost, SILENT_MS);
      nodes = JSON.parse(data).nodes ?? nodes;
      this.note(true, nodes);
    };
  }

  async beat(turn) {
    const asked = reached(at("nodes"), LIMIT_MS);
    const late = new Promise((done) => { setTimeout(done, PATIENCE_MS); });
    let answer = await Promise.race([asked, late]);
    if (answer === undefined) answer = (await reached("/healthz/live", LIMIT_MS - PATIENCE_MS)) ?? (await asked);
    if (turn !== this.turn) return;
    const answers = answer !== null;
    this.note(answers, answer?.nodes);
    if (turn !== this.turn) return;
    this.asked = answers ? this.asked + 1 : 0;
    const again = this.asked % ANSWERS === 1 ? () => this.open(turn) : () => this.beat(turn);
    this.timer = setTimeout(again, EVERY_MS);
  }

  note(answers, nodes) {
    if (answers !== this.answers) {
      this.answers = answers;
      this.tell(answers);
    } else if (nodes) this.watch(nodes);
  }
}

/** What is answered, whatever it is; `null` for nothing. */
async function reached(path, limit_ms) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), limit_ms);
  try {
    const response = await fetch(path, { signal: limit.signal, cache: "no-store", credentials: "same-origin" });
    return await response.json();
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}
