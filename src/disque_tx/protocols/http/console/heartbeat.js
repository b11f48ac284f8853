// Whether the node of this page answers, and whether it has lost another one: asked all the time while somebody looks, so that a dead or hung node is known within 3 s.

const EVERY_MS = 1000;
const LIMIT_MS = 1800;
// Every other time the node is asked about its links, too, which costs it more.
const WATCHED = 2;

/** Ask until `end`. `tell(answers)`: called when that changes; `watch()`: called every two seconds while the node answers. */
export class Heartbeat {
  constructor(tell, watch) {
    this.tell = tell;
    this.watch = watch;
    this.beats = 0;
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
    } else if (answers && (this.beats += 1) % WATCHED === 0) this.watch();
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
