"use strict";
// A tree of any size, by ARIA's pattern: only the rows in sight are elements.
{
  const SPARE = 8; // rows beyond each edge, so that a fast scroll shows none empty
  let trees = 0;

  /**
   * A tree.
   *
   * parent: the place of each node's parent, before it, or -1.
   * draw(node): the content of a row. text(node): what typing a letter jumps to.
   * href(node): where Enter leads, or null.
   * Returns its element with `keep(wanted, open)`: show the nodes marked in a Uint8Array, all of them open
   * if `open`; `expand()`, `collapse()`, `redraw()`.
   */
  site.tree = ({ parent, draw, text, href, label, depth = 2 }) => {
    const n = parent.length;
    const prefix = `tree${(trees += 1)}-`;
    const { order, end, level } = laidOut(parent);
    const isInner = new Uint8Array(n); // has a child that is kept
    const open = new Uint8Array(n);
    let kept = new Uint8Array(n).fill(1);
    let before = null; // what was open when a filter opened everything
    let shown = [];
    let position = new Map();
    const places = new Int32Array(n); // among its siblings, from 1
    let siblings = new Map();
    let active = order[0];
    const drawn = new Map();

    const space = site.el("div", { role: "none", class: "space" });
    const box = site.el("div", { class: "tree", role: "tree", tabindex: "0", "aria-label": label }, space);
    const rowHeight = 2 * parseFloat(getComputedStyle(document.documentElement).fontSize);

    function flatten() {
      shown = [];
      position = new Map();
      siblings = new Map();
      for (let at = 0; at < n; ) {
        const node = order[at];
        if (kept[node]) {
          position.set(node, shown.length);
          shown.push(node);
          places[node] = (siblings.get(parent[node]) ?? 0) + 1;
          siblings.set(parent[node], places[node]);
        }
        at = kept[node] && open[node] ? at + 1 : end[at];
      }
      if (!position.has(active)) active = shown.find((node) => node === parent[active]) ?? shown[0];
      space.style.height = `${shown.length * rowHeight}px`;
      redraw();
    }

    function redraw() {
      drawn.forEach((row) => row.remove());
      drawn.clear();
      render();
    }

    function render() {
      const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - SPARE);
      const last = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + SPARE);
      const here = position.get(active);
      for (const [at, row] of drawn) {
        if ((at < first || at >= last) && at !== here) {
          row.remove();
          drawn.delete(at);
        }
      }
      for (let at = first; at < last; at += 1) place(at);
      if (here !== undefined) place(here); // what is active must be there to be read
    }

    function place(at) {
      if (drawn.has(at)) return;
      const node = shown[at];
      const inner = isInner[node];
      const row = site.el(
        "div",
        {
          role: "treeitem",
          id: prefix + node,
          "aria-level": level[node],
          "aria-setsize": siblings.get(parent[node]),
          "aria-posinset": places[node],
          "aria-expanded": inner ? String(Boolean(open[node])) : null,
          "aria-selected": String(node === active),
        },
        site.el("span", { class: "twisty", "aria-hidden": "true" }, inner ? (open[node] ? "▾" : "▸") : ""),
        draw(node),
      );
      row.style.setProperty("--level", level[node] - 1);
      row.style.transform = `translateY(${at * rowHeight}px)`;
      drawn.set(at, row);
      space.append(row);
    }

    function activate(node) {
      if (node === undefined) return;
      drawn.get(position.get(active))?.setAttribute("aria-selected", "false");
      active = node;
      const top = position.get(node) * rowHeight;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
      render();
      drawn.get(position.get(node)).setAttribute("aria-selected", "true");
      box.setAttribute("aria-activedescendant", prefix + node);
    }

    function turn(node, on) {
      open[node] = on ? 1 : 0;
      flatten();
      activate(node);
    }

    function typed(letter) {
      const from = position.get(active);
      for (let step = 1; step <= shown.length; step += 1) {
        const node = shown[(from + step) % shown.length];
        if (text(node).toLowerCase().startsWith(letter)) return activate(node);
      }
    }

    const page = () => Math.max(1, Math.floor(box.clientHeight / rowHeight) - 1);
    const move = (by) => activate(shown[Math.max(0, Math.min(shown.length - 1, position.get(active) + by))]);
    const keys = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(page()),
      PageUp: () => move(-page()),
      Home: () => activate(shown[0]),
      End: () => activate(shown[shown.length - 1]),
      ArrowRight: () => (isInner[active] ? (open[active] ? move(1) : turn(active, true)) : null),
      ArrowLeft: () => {
        if (isInner[active] && open[active]) turn(active, false);
        else if (parent[active] >= 0) activate(parent[active]);
      },
      Enter: () => {
        const to = href(active);
        if (to) location.hash = to;
        else if (isInner[active]) turn(active, !open[active]);
      },
      " ": () => isInner[active] && turn(active, !open[active]),
      "*": () => {
        order.forEach((node) => parent[node] === parent[active] && (open[node] = 1));
        flatten();
        activate(active);
      },
    };

    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !shown.length) return;
      const known = keys[event.key];
      if (!known && !/^\p{L}$/u.test(event.key)) return;
      event.preventDefault();
      if (known) known();
      else typed(event.key.toLowerCase());
    });
    box.addEventListener("click", (event) => {
      const row = event.target.closest("[role=treeitem]");
      if (!row || event.target.closest("a")) return;
      const node = Number(row.id.slice(prefix.length));
      if (isInner[node]) turn(node, !open[node]);
      else activate(node);
    });
    box.addEventListener("focus", () => shown.length && activate(active));
    box.addEventListener("scroll", render, { passive: true });
    new ResizeObserver(render).observe(box);

    const openTo = (depth) => {
      before = null;
      for (let node = 0; node < n; node += 1) open[node] = level[node] <= depth ? 1 : 0;
      flatten();
    };
    box.expand = () => openTo(Infinity);
    box.collapse = () => openTo(0);
    box.redraw = redraw;
    box.keep = (wanted, everythingOpen) => {
      kept = wanted;
      isInner.fill(0);
      for (let node = 0; node < n; node += 1) if (kept[node] && parent[node] >= 0) isInner[parent[node]] = 1;
      if (everythingOpen) {
        before ??= open.slice();
        open.fill(1);
      } else if (before) {
        open.set(before);
        before = null;
      }
      box.scrollTop = 0;
      flatten();
    };
    for (const above of parent) if (above >= 0) isInner[above] = 1;
    openTo(depth);
    return box;
  };

  /** Mark the nodes whose words hold a text, and what lies below them. */
  site.matched = (parent, words, text) => {
    const wanted = text.trim().toLowerCase();
    const marks = new Uint8Array(parent.length);
    parent.forEach((above, node) => {
      if ((above >= 0 && marks[above]) || words[node].includes(wanted)) marks[node] = 1;
    });
    return marks;
  };

  /** The tools above a tree, with the buttons that open and close all of it. */
  site.treeTools = (tree, ...tools) =>
    site.el(
      "div",
      { class: "tools" },
      tools,
      site.el("button", { type: "button", click: tree.expand }, "Expand all"),
      site.el("button", { type: "button", click: tree.collapse }, "Collapse all"),
    );

  /** Depth-first order, where each subtree ends in it, and the level (from 1) of each node. */
  function laidOut(parent) {
    const n = parent.length;
    const below = Array.from({ length: n }, () => []);
    const level = new Int32Array(n);
    const roots = [];
    parent.forEach((above, node) => {
      level[node] = above < 0 ? 1 : level[above] + 1;
      (above < 0 ? roots : below[above]).push(node);
    });
    const order = [];
    const end = new Int32Array(n);
    const size = new Int32Array(n).fill(1);
    for (let node = n - 1; node >= 0; node -= 1) if (parent[node] >= 0) size[parent[node]] += size[node];
    const pending = roots.reverse();
    while (pending.length) {
      const node = pending.pop();
      end[order.length] = order.length + size[node];
      order.push(node);
      for (let at = below[node].length - 1; at >= 0; at -= 1) pending.push(below[node][at]);
    }
    return { order, end, level };
  }
}
