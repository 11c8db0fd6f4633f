"use strict";
// Elements and figures. What comes from data goes in as text or as an attribute, never as HTML.

const site = {};
{
  const integer = new Intl.NumberFormat("en-US");

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** An element: attributes (functions listen to the event of that name), children. */
  site.el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

  site.svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  site.count = (n) => (n === null || n === undefined ? "–" : integer.format(n));

  site.plural = (n, one, many = one + "s") => `${site.count(n)} ${n === 1 ? one : many}`;

  site.figure = (x, digits = 4) => (x === null || x === undefined ? "–" : x.toFixed(digits));

  /** The address of a page; its parts may hold any character. */
  site.to = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");

  site.link = (text, ...parts) => site.el("a", { href: site.to(...parts) }, text);

  /** A link to another site, where the address is one; else the text. */
  site.outward = (text, url) =>
    /^https?:\/\//.test(url ?? "") ? site.el("a", { href: url, rel: "noreferrer noopener" }, text) : text;

  site.list = (items) => site.el("ul", {}, items.map((item) => site.el("li", {}, item)));

  /** Pairs of a term and what it is; those without are left out. */
  site.facts = (pairs) =>
    site.el(
      "dl",
      { class: "facts" },
      pairs
        .filter(([, told]) => told !== null && told !== undefined && told !== "")
        .map(([term, told]) => site.el("div", {}, site.el("dt", {}, term), site.el("dd", {}, told))),
    );

  site.section = (title, ...content) => site.el("section", {}, site.el("h2", {}, title), content);

  site.code = (text) => site.el("pre", { tabindex: "0" }, site.el("code", {}, text));

  let fields = 0;
  /** A control below its label. */
  site.field = (label, control) => {
    control.id = `field${(fields += 1)}`;
    return site.el("div", { class: "field" }, site.el("label", { for: control.id }, label), control);
  };

  /** A labelled choice; options are texts or pairs of value and text. */
  site.select = (label, options, chosen, changed) => {
    const items = options.map((option) => {
      const [value, text] = Array.isArray(option) ? option : [option, option];
      return site.el("option", { value, selected: value === chosen }, text);
    });
    return site.field(label, site.el("select", { change: (event) => changed(event.target.value) }, items));
  };

  site.input = (label, value, changed) => {
    const plain = { type: "search", autocomplete: "off", spellcheck: "false" };
    return site.field(label, site.el("input", { ...plain, value, input: (event) => changed(event.target.value) }));
  };

  let telling = 0;
  /** Tell a screen reader, once typing has paused. */
  site.say = (text) => {
    clearTimeout(telling);
    telling = setTimeout(() => (document.getElementById("said").textContent = text), 300);
  };
}
