// Whether the node of this page answers: asked all the time while somebody looks, so that a dead or hung one is known within 3 s.

const EVERY_MS = 1000;
const LIMIT_MS = 1800;

/** Ask until `end`. `tell(answers)`: called when that changes. */
export class Heartbeat {
  constructor(tell) {
    this.tell = tell;
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
    const answers = await reached("/healthz/live");
    if (turn !== this.turn) return;
    if (answers !== this.answers) {
      this.answers = answers;
      this.tell(answers);
    }
    this.timer = setTimeout(() => this.beat(turn), EVERY_MS);
  }
}

async function reached(path) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), LIMIT_MS);
  try {
    await fetch(path, { signal: limit.signal, cache: "no-store", credentials: "omit" });
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
