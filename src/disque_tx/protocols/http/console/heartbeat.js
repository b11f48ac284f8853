// Whether the node of this page answers, and whether it has lost another one: asked all the time while somebody looks, so that a dead or hung node is known within 3 s.

import { at } from "/console/api.js";

const EVERY_MS = 1000;
const LIMIT_MS = 1800;
// While a node lets its clients wait, it says so of nothing but its health.
const PATIENCE_MS = 400;

/** Ask until `end`. `tell(answers)`: called when that changes; `watch(nodes)`: called every second with the nodes that it knows. */
export class Heartbeat {
  constructor(tell, watch) {
    this.tell = tell;
    this.watch = watch;
    this.answers = true;
    this.timer = 0;
    this.turn = 0;
  }

  start() {
    this.end();
    this.beat(this.turn);
  }

  end() {
    clearTimeout(this.timer);
    this.turn += 1;
  }

  async beat(turn) {
    const asked = reached(at("nodes"), LIMIT_MS);
    const late = new Promise((done) => { setTimeout(done, PATIENCE_MS); });
    let answer = await Promise.race([asked, late]);
    if (answer === undefined) answer = (await reached("/healthz/live", LIMIT_MS - PATIENCE_MS)) ?? (await asked);
    if (turn !== this.turn) return;
    const answers = answer !== null;
    if (answers !== this.answers) {
      this.answers = answers;
      this.tell(answers);
    } else if (answer?.nodes) this.watch(answer.nodes);
    this.timer = setTimeout(() => this.beat(turn), EVERY_MS);
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
