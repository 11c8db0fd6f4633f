"use strict";
// The first page: every benchmark of the site.
{
  site.views = {};

  /** A form that leads to the search. */
  site.searchForm = () => {
    let text = "";
    const field = site.input("Find a class: name, synset or wnid", "", (typed) => (text = typed));
    const go = (event) => {
      event.preventDefault();
      location.hash = `#/search?${new URLSearchParams({ q: text })}`;
    };
    return site.el("form", { role: "search", submit: go, class: "tools" }, field, site.el("button", {}, "Search"));
  };

  /** "complete", or what is still lacking. */
  site.state = (about) =>
    about.complete ? "complete" : about.awaiting.length ? `awaiting ${about.awaiting.join(", ")}` : "incomplete";

  const card = (about) =>
    site.el(
      "li",
      {},
      site.el("h2", {}, site.link(about.name, "benchmark", about.name)),
      site.el("p", {}, about.title),
      site.roleBar(about.roles),
      site.el("p", { class: "counts" }, site.roleCounts(about.roles)),
      site.el("p", { class: "note" }, [`version ${about.version}`, site.state(about), about.paper].filter(Boolean).join(" · ")),
    );

  site.views[""] = async () => {
    const found = site.el("ul", { class: "cards" }, site.index.benchmarks.map(card));
    return {
      title: "wordnet-splits",
      heading: "Benchmarks for what a vision model does not know",
      content: [
        site.el(
          "p",
          {},
          "WordNet decides for every class of every dataset which role it has in a benchmark, and the evidence is kept. ",
          `Here are ${site.plural(site.index.benchmarks.length, "benchmark")}.`,
        ),
        site.searchForm(),
        site.el("details", { class: "legend" }, site.el("summary", {}, "What the roles mean"), site.legend()),
        found,
      ],
    };
  };
}
