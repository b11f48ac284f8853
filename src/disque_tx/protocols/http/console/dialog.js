// Questions to the user.

import { button, h } from "/console/dom.js";

function ask(title, content, end) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), content, h("div", { class: "end" }, end)));
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
}

/**
 * Ask before something is destroyed, or, if it is `safe`, before much is changed. `typed`: a name that must be typed first;
 * `checks`: texts of boxes; `extra`: more elements, such as fields. Resolves to the states of the boxes, or to `null` if the user does not want it.
 */
export function confirm(title, text, verb, { typed, checks = [], extra = [], safe = false } = {}) {
  return new Promise((resolve) => {
    const boxes = checks.map((words) => [h("input", { type: "checkbox" }), words]);
    const go = h("button", { class: safe ? "main" : "danger", value: "yes" }, verb);
    const field = typed !== undefined && h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    if (field) {
      go.disabled = true;
      field.addEventListener("input", () => { go.disabled = field.value !== typed; });
    }
    const content = [h("p", {}, text), boxes.map(([box, words]) => h("label", { class: "check" }, box, words)), extra,
      field && h("label", {}, `Type ${typed} to go on`, field)];
    const cancel = button("Cancel", () => dialog.close());
    const dialog = ask(title, content, [cancel, go]);
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? boxes.map(([box]) => box.checked) : null));
    (field || (safe ? go : cancel)).focus(); // so that Enter alone destroys nothing
  });
}

/** Show keys and what they do. */
export function shortcuts(rows) {
  const list = h("dl", {}, rows.map(([keys, what]) => [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, what)]));
  const dialog = ask("Keyboard shortcuts", list, button("Close", () => dialog.close(), { class: "main" }));
}
