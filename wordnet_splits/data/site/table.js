"use strict";
// Tables that sort and page over their data, so that long ones stay quick.
{
  const PAGE = 100;
  const isMissing = (x) => x === null || x === undefined || x === "";

  /**
   * A table.
   *
   * columns: [{title, key: row => what it sorts by, cell: row => what it shows (by default the key), number}].
   * options: {caption, sort: [column, "ascending" | "descending"], sortable, more: {title, content: row => what a button
   * of that title opens below it}. What is missing stays last.
   * Returns its element; `element.update(rows)` shows other rows in the same order.
   */
  site.table = (columns, rows, { caption, sort = null, sortable = true, more = null } = {}) => {
    let order = sort;
    let length = PAGE;
    const body = site.el("tbody");
    const heads = columns.map((column, at) => {
      const content = sortable ? site.el("button", { type: "button", click: () => turn(at) }, column.title) : column.title;
      return site.el("th", { scope: "col", class: column.number ? "number" : null }, content);
    });
    const table = site.el(
      "table",
      {},
      site.el("caption", {}, site.el("span", {}, caption)),
      site.el("thead", {}, site.el("tr", {}, heads, more ? site.el("th", { scope: "col" }, more.title) : null)),
      body,
    );
    const rest = site.el("button", { type: "button", click: () => longer() });
    const box = site.el("div", { class: sortable ? "wide sorts" : "wide", tabindex: "0", role: "region", "aria-label": caption }, table);
    const whole = site.el("div", {}, box, rest);

    function turn(at) {
      const first = columns[at].number && columns[at].number !== "ascending" ? "descending" : "ascending";
      const other = { ascending: "descending", descending: "ascending" };
      order = [at, order?.[0] === at ? other[order[1]] : first];
      site.say(`sorted by ${columns[at].title}, ${order[1]}`);
      length = PAGE;
      show();
    }

    function longer() {
      const at = length;
      length += 5 * PAGE;
      show();
      (body.rows[at].querySelector("a, button") ?? box).focus();
    }

    function sorted() {
      if (!order) return rows;
      const { key } = columns[order[0]];
      const sign = order[1] === "descending" ? -1 : 1;
      return rows.slice().sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      });
    }

    function show() {
      heads.forEach((head, at) => {
        if (order?.[0] === at) head.setAttribute("aria-sort", order[1]);
        else head.removeAttribute("aria-sort");
      });
      body.replaceChildren(...sorted().slice(0, length).map(shown));
      rest.hidden = rows.length <= length;
      rest.textContent = `Show more (${site.count(rows.length - length)} hidden)`;
    }

    const shown = (row) =>
      site.el("tr", {}, columns.map((column) => {
        const told = (column.cell ?? column.key)(row);
        const kind = column.number ? "number" : column.text ? "text" : null;
        return site.el("td", { class: [kind, isMissing(told) && "absent"].filter(Boolean).join(" ") || null, "data-title": column.title }, isMissing(told) ? "–" : told);
      }), more ? site.el("td", {}, opener(row)) : null);

    function opener(row) {
      let below = null;
      const button = site.el("button", { type: "button", "aria-expanded": "false" }, more.title);
      button.addEventListener("click", () => {
        if (below) below.remove();
        const content = () => site.el("td", { colspan: columns.length + 1 }, site.el("div", { class: "below" }, more.content(row)));
        below = below ? null : site.el("tr", {}, content());
        if (below) button.closest("tr").after(below);
        button.setAttribute("aria-expanded", String(Boolean(below)));
      });
      return button;
    }

    whole.update = (other) => {
      rows = other;
      length = PAGE;
      show();
    };
    show();
    return whole;
  };

  /** A column of a field as it is. */
  site.column = (title, name, kind) => ({ title, key: (row) => row[name], [kind ?? "plain"]: true });

  /** A column of integers. */
  site.counts = (title, name) => ({ ...site.column(title, name, "number"), cell: (row) => site.count(row[name]) });
}
