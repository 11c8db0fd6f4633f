"use strict";
// The way from a class up to the least common subsumer and down to its nearest ID class, drawn.
{
  const STEP = 44;
  const TOP = 28;
  const LETTER = 8.2; // width of one, at 14 pixels and bold

  /**
   * A figure of a way; its caption says it in words.
   *
   * way: [{text, full}] from the class to the ID class; top: the place of the subsumer; roles: of both ends.
   */
  site.way = (way, top, roles) => {
    const words = way.map((one) => one.text);
    const last = way.length - 1;
    const edges = site.plural(last, "edge");
    const meeting = top === 0 || top === last ? "" : `; they meet at ${words[top]}`;
    const caption = site.el("figcaption", {}, `${edges}${meeting}: ${words.join(" › ")}`);
    const holder = site.el("div");
    let drawn = 0;
    new ResizeObserver(([{ contentRect }]) => {
      const width = Math.floor(Math.min(contentRect.width, 720));
      if (width < 1 || width === drawn) return;
      drawn = width;
      holder.replaceChildren(draw(way, top, roles, width));
    }).observe(holder);
    return site.el("figure", {}, holder, caption);
  };

  function draw(way, top, roles, width) {
    const last = way.length - 1;
    const both = top > 0 && top < last;
    const longest = Math.max(...way.slice(0, top).map((one) => one.text.length));
    const middle = Math.floor(Math.min(width / 2, 48 + LETTER * longest));
    const places = way.map((_, at) => {
      const side = !both ? "left" : at < top ? "left" : at > top ? "right" : "middle";
      const x = { left: 16, middle, right: middle + 32 }[side];
      return { x, y: TOP + STEP * Math.abs(at - top) };
    });
    const room = (at) => width - places[at].x - 16 - (both && at < top ? width - middle : 0);
    const height = TOP + STEP * Math.max(top, last - top) + 24;
    const lines = places.slice(1).map(({ x, y }, at) => {
      const from = places[at];
      const bend = (from.y + y) / 2;
      return site.svg("path", { class: "edge", d: `M${from.x} ${from.y}C${from.x} ${bend} ${x} ${bend} ${x} ${y}` });
    });
    const points = way.map((one, at) => {
      const { x, y } = places[at];
      const role = at === 0 ? roles[0] : at === last ? roles[1] : null;
      const kind = role ? `end ${role}` : at === top ? "top" : "inner";
      const most = Math.floor((room(at) - 4) / LETTER);
      const text = one.text.length > most ? `${one.text.slice(0, most - 1)}…` : one.text;
      return site.svg(
        "g",
        { class: kind, transform: `translate(${x} ${y})` },
        site.svg("title", {}, one.full),
        role === "id" || !role ? site.svg("circle", { r: role ? 11 : 5 }) : site.svg("rect", { x: -10, y: -10, width: 20, height: 20, rx: 3 }),
        role ? site.svg("text", { class: "letter", "text-anchor": "middle", y: 4.5 }, site.letter(role)) : null,
        site.svg("text", { class: "name", x: 17, y: 4.5 }, text),
      );
    });
    return site.svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The way between the two classes, as told below" },
      lines,
      points,
    );
  }
}
