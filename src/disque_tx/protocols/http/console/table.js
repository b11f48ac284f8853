// Tables whose rows stay the same elements while their values change: the focus and the mouse stay where they are.

import { h, put } from "/console/dom.js";

/**
 * `columns`: each with `title`, with its unit in parentheses, and `text(row)` or `fill(cell, row, isNew)`; `num` for numbers, `minor` for what a
 * phone leaves out, `sort` for the word that `onsort` gets. `key(row)`: what makes a row the same one.
 */
export class Table {
  constructor(caption, columns, { key, sorted, onsort, row }) {
    this.columns = columns;
    this.key = key;
    this.row = row;
    this.rows = new Map();
    // On phones a row is a block, not a row of a table: what everything is, is said by roles.
    this.body = h("tbody", { role: "rowgroup" });
    this.heads = columns.map((column) => {
      const sort = column.sort && onsort;
      const [title, unit] = column.title.replace(")", "").split(" (");
      const shown = sort ? h("button", { type: "button", onclick: () => onsort(column.sort) }, title) : title;
      return h(title ? "th" : "td", { scope: title ? "col" : null, role: title ? "columnheader" : "cell", class: classes(column) }, shown, unit && h("small", {}, unit));
    });
    const table = h("table", { "aria-label": caption, role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, this.heads)), this.body);
    this.node = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${caption}, scrollable` }, table);
    this.mark(sorted);
  }

  /** Show which column the rows are sorted by. */
  mark(sorted) {
    this.columns.forEach((column, at) => {
      if (column.sort && column.sort === sorted) this.heads[at].setAttribute("aria-sort", column.ascending ? "ascending" : "descending");
      else this.heads[at].removeAttribute("aria-sort");
    });
  }

  update(values) {
    const gone = new Set(this.rows.keys());
    values.forEach((value, at) => {
      const key = this.key(value);
      let row = this.rows.get(key);
      gone.delete(key);
      const isNew = row === undefined;
      if (isNew) {
        row = h("tr", { role: "row" }, this.columns.map((column, number) =>
          h(number === 0 ? "th" : "td", { class: classes(column), scope: number === 0 && "row", role: number === 0 ? "rowheader" : "cell", "data-title": column.title })));
        this.rows.set(key, row);
      }
      this.columns.forEach((column, number) => {
        const cell = row.children[number];
        if (column.fill) column.fill(cell, value, isNew);
        else put(cell, column.text(value));
        if (column.num) cell.classList.toggle("zero", /^0(?![.,]?\d)/.test(cell.textContent));
      });
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] ?? null);
    });
    for (const key of gone) {
      this.rows.get(key).remove();
      this.rows.delete(key);
    }
  }
}

function classes(column) {
  return [column.num && "num", column.minor && "minor", column.class].filter(Boolean).join(" ") || undefined;
}

/** A cell with a link. */
export function link(text, href, title) {
  return h("a", { href, title }, text);
}
