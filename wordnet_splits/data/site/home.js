"use strict";
// The first page: the benchmarks by paper, the variants of each below it.
{
  site.views = {};

  /** A form that leads to the search. */
  site.searchForm = () => {
    let text = "";
    const field = site.input(`Find a class: name${site.orNode()}`, "", (typed) => (text = typed));
    const go = (event) => {
      event.preventDefault();
      location.hash = `#/search?${new URLSearchParams({ q: text })}`;
    };
    return site.el("form", { role: "search", submit: go, class: "tools" }, field, site.el("button", {}, "Search"));
  };

  /** "complete", or what a benchmark lacks. */
  site.state = (about) =>
    about.complete ? "complete" : about.awaiting.length ? `awaiting ${about.awaiting.join(", ")}` : "incomplete";

  const versionAndState = (about) => `version ${about.version} · ${site.state(about)}`;

  /** Items by key, in the order of each key's first item. */
  const grouped = (items, key) => {
    const groups = new Map();
    for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
    return groups;
  };

  const variant = (about) =>
    site.el(
      "li",
      {},
      site.link(about.name, "benchmark", about.name),
      site.el("p", {}, about.title || about.about.description),
      site.el("p", { class: "note" }, versionAndState(about)),
    );

  const card = ([about, ...variants]) =>
    site.el(
      "li",
      {},
      site.el("h3", {}, site.link(about.name, "benchmark", about.name)),
      site.el("p", {}, about.title || about.about.description),
      site.roleBar(about.roles),
      site.el("p", { class: "counts" }, site.roleCounts(about.roles)),
      site.el("p", { class: "note" }, versionAndState(about)),
      variants.length ? site.el("ul", { class: "variants", "aria-label": "Variants" }, variants.map(variant)) : null,
    );

  /** The benchmarks of one paper: variants share the draw of their parent, which is named as the draw. */
  const family = ([paper, benchmarks]) => {
    const isParent = (about) => about.name === about.draw;
    const byDraw = [...grouped(benchmarks, (about) => about.draw).values()];
    const parentFirst = byDraw.map((members) => [
      ...members.filter(isParent),
      ...members.filter((about) => !isParent(about)),
    ]);
    const others = site.index.benchmarks.length > benchmarks.length ? "Other benchmarks" : "Benchmarks";
    return site.section(paper || others, site.el("ul", { class: "cards" }, parentFirst.map(card)));
  };

  site.views[""] = async (_, query) => {
    if (site.index.benchmarks.length === 1) return site.views.benchmark([site.index.benchmarks[0].name], query);
    const families = [...grouped(site.index.benchmarks, (about) => about.family)];
    return {
      title: "wordnet-splits",
      heading: "Benchmarks for what a vision model does not know",
      content: [
        site.el(
          "p",
          {},
          `${site.hierarchies().length === 1 ? `The hierarchy ${site.hierarchies()[0]}` : "A hierarchy"} decides for every class of every dataset which role it has in a benchmark, and the evidence is kept. `,
          `Here are ${site.plural(site.index.benchmarks.length, "benchmark")}.`,
        ),
        site.searchForm(),
        site.legend(),
        families.filter(([paper]) => paper).map(family),
        families.filter(([paper]) => !paper).map(family),
      ],
    };
  };
}
