// What throws something away begins ten seconds later: until then it can be undone, because nothing was done.

import { button, h, put } from "/console/dom.js";

const WAIT_S = 10;

/** Say what is about to happen. Resolves to whether it may: `false` if somebody chose to undo it. */
export function undoable(text) {
  return new Promise((resolve) => {
    let left_s = WAIT_S;
    const words = h("span", { role: "status" }, text);
    const seconds = h("span", { class: "soft" });
    const tell = () => put(seconds, `in ${left_s} s`);
    const end = (go) => {
      clearInterval(timer);
      bar.remove();
      resolve(go);
    };
    const bar = h("div", { class: "undo" }, words, seconds, button("Undo", () => end(false), { class: "main" }), button("Now", () => end(true)));
    const timer = setInterval(() => {
      left_s -= 1;
      if (left_s > 0) tell();
      else end(true);
    }, 1000);
    tell();
    document.body.append(bar);
  });
}
