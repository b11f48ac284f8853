// Elements. Texts become text nodes, never markup: whatever a name or body contains is shown as it is.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element of HTML. `properties`: attributes, and handlers such as `onclick`. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An element of SVG. */
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Change a text only if it differs, so that selections and screen readers are left alone. */
export function put(element, text) {
  const value = String(text);
  if (element.textContent !== value) element.textContent = value;
}

/**
 * Give an element other children, and keep those that are still right: a link under the mouse, the focus and a selected text stay. For elements
 * without handlers, because an element that is kept has the handlers that it had.
 */
export function renew(element, ...children) {
  match(element, [...fill(element.cloneNode(false), {}, children).childNodes]);
}

function match(element, wanted) {
  wanted.forEach((node, at) => {
    const kept = element.childNodes[at];
    if (!kept) element.append(node);
    else if (kept.isEqualNode(node)) return;
    // A link to another place is another link: a click that has begun does not go there.
    else if (kept.nodeName !== node.nodeName || kept.getAttribute?.("href") !== node.getAttribute?.("href")) kept.replaceWith(node);
    else if (kept.nodeType === Node.TEXT_NODE) kept.data = node.data;
    else {
      for (const { name } of [...kept.attributes]) if (!node.hasAttribute(name)) kept.removeAttribute(name);
      for (const { name, value } of node.attributes) kept.setAttribute(name, value);
      match(kept, [...node.childNodes]);
    }
  });
  while (element.childNodes.length > wanted.length) element.lastChild.remove();
}

/** What is shown in place of an empty list. `hint`: what to do next; `example`: a command. */
export function empty(title, hint, example) {
  return h("div", { class: "empty" }, h("b", {}, title), hint, example && h("div", {}, h("code", {}, example)));
}

/** A card with a heading. `end`: controls at the right of the heading. */
export function card(title, end, ...children) {
  const heading = h("h2", {}, title);
  return h("section", { class: "card" }, h("div", { class: "bar" }, heading, end && h("div", { class: "end" }, end)), ...children);
}

export function button(text, onclick, properties) {
  return h("button", { type: "button", onclick, ...properties }, text);
}

/** Buttons of which one is chosen. `choices`: values and texts. */
export function segments(label, choices, chosen, choose) {
  const buttons = choices.map(([value, text]) =>
    button(text, () => {
      mark(value);
      choose(value);
    }, { "data-value": value }));
  const mark = (value) => buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.value === String(value))));
  mark(chosen);
  return h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
}

/** Figures with names and units: `set(name, text, unit, note)` changes one. */
export function tiles(names) {
  const parts = new Map();
  const node = h("dl", { class: "card tiles" }, Object.entries(names).map(([key, name]) => {
    const [value, unit, note] = [h("span", {}, "–"), h("small", {}), h("span", { class: "note" })];
    parts.set(key, { value, unit, note });
    return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, unit), h("dd", { class: "note" }, note));
  }));
  const set = (key, value, unit = "", remark = "") => {
    const part = parts.get(key);
    put(part.value, value);
    put(part.unit, unit);
    put(part.note, remark);
  };
  return { node, set };
}
