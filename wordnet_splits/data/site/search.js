"use strict";
// Search for a class over every benchmark, by name, class id, wnid or any word of its synset.
{
  const MOST = 60;

  site.views.search = async (_, query) => {
    const [search, synsets] = await Promise.all([site.load("search"), site.synsets()]);
    const texts = search.name.map((name, at) => textsOf(search, synsets, name, at));
    const count = site.el("p", { class: "note" });
    const found = site.el("ol", { class: "found" });

    function find(text) {
      const wanted = text.trim().toLowerCase();
      const ranked = wanted ? ranking(texts, wanted) : [];
      const more = ranked.length > MOST ? `; the first ${MOST} are shown` : "";
      count.textContent = wanted
        ? `${site.plural(ranked.length, "class", "classes")} found${more}`
        : `${site.plural(texts.length, "class", "classes")} of ${site.plural(search.source.length, "source")}`;
      found.replaceChildren(...ranked.slice(0, MOST).map((at) => result(search, synsets, at)));
      site.say(count.textContent);
    }

    const typed = (text) => {
      find(text);
      site.keep({ q: text.trim() });
    };
    const box = site.input(`Name, class id${site.orNode()}`, query.get("q") ?? "", typed);
    find(query.get("q") ?? "");
    return { title: "Search", content: [site.el("div", { class: "tools", role: "search" }, box), count, found] };
  };

  function textsOf(search, synsets, name, at) {
    const synset = search.synset[at];
    const words = synset === null ? [] : [...synsets.table.name[synset].split(", "), synsets.table.wnid[synset]];
    return [name, search.class_id[at], ...words].map((text) => text.toLowerCase());
  }

  /** Places whose texts hold the wanted one: equal ones first, then beginnings, then beginnings of words. */
  function ranking(texts, wanted) {
    const ranked = [[], [], [], []];
    texts.forEach((all, at) => {
      const within = all.filter((text) => text.includes(wanted));
      if (!within.length) return;
      if (within.includes(wanted)) ranked[0].push(at);
      else if (within.some((text) => text.startsWith(wanted))) ranked[1].push(at);
      else if (within.some((text) => text.includes(" " + wanted))) ranked[2].push(at);
      else ranked[3].push(at);
    });
    return ranked.flat();
  }

  function result(search, synsets, at) {
    const synset = search.synset[at];
    return site.el(
      "li",
      {},
      site.el("h2", {}, search.name[at]),
      site.el("p", { class: "note" }, `${search.source[search.source_at[at]]} · ${search.class_id[at]}`, synset === null ? "" : ` · ${synsets.full(synset)}`),
      site.roleLinks(search, at, search.in[at]),
    );
  }
}
