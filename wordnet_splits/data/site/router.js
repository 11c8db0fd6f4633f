"use strict";
// Addresses: #/page/part/part?key=value. The state of a page is in its address, so that links can be shared.
{
  const NAVIGATION = [
    ["Benchmarks", ""],
    ["Search", "search"],
    ["Compare", "diff"],
    ["Leaderboard", "leaderboard"],
    ["Distances", "sets"],
    ["Audit", "audit"],
    ["Fidelity", "fidelity"],
    ["ImageNet-21K", "imagenet21k"],
  ];
  const NEEDS = {
    leaderboard: "leaderboard",
    sets: "distances",
    audit: "audit",
    fidelity: "fidelity",
    imagenet21k: "imagenet21k",
  }; // data that not every site has
  const main = document.querySelector("main");
  let turn = 0;

  const path = () => (location.hash.startsWith("#/") ? location.hash.slice(2) : "");

  function address() {
    const [way, ...rest] = path().split("?");
    try {
      return { parts: way.split("/").map(decodeURIComponent), query: new URLSearchParams(rest.join("?")) };
    } catch {
      throw new site.NotFound("This address is damaged.");
    }
  }

  /** Write the state of the page into its address; empty values leave it. */
  site.keep = (state) => {
    const query = new URLSearchParams(path().split("?").slice(1).join("?"));
    for (const [key, value] of Object.entries(state)) {
      if (value === "" || value === null) query.delete(key);
      else query.set(key, value);
    }
    const text = query.toString();
    history.replaceState(null, "", `#/${path().split("?")[0]}${text && "?" + text}`);
  };

  site.parameter = (key) => new URLSearchParams(path().split("?").slice(1).join("?")).get(key);

  async function show() {
    const mine = (turn += 1);
    const first = mine === 1;
    main.setAttribute("aria-busy", "true");
    const waiting = setTimeout(() => first && main.replaceChildren(site.el("p", {}, "Loading …")), 200);
    let page;
    try {
      site.index ??= await site.load("index");
      const { parts, query } = address();
      const view = site.views[parts[0]];
      if (!view || !isHere(parts[0])) throw new site.NotFound("There is no page of this address.");
      page = await view(parts.slice(1), query);
    } catch (error) {
      page = failed(error);
    }
    clearTimeout(waiting);
    if (mine !== turn) return; // another page was asked for meanwhile
    const heading = site.el("h1", { tabindex: "-1" }, page.heading ?? page.title);
    main.replaceChildren(heading, ...page.content.flat(Infinity).filter(Boolean));
    main.removeAttribute("aria-busy");
    document.title = page.title === "wordnet-splits" ? page.title : `${page.title} · wordnet-splits`;
    navigation();
    page.shown?.();
    if (!first) {
      scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
  }

  const isHere = (page) =>
    page === "diff" ? site.index.benchmarks.length > 1 : !(page in NEEDS) || site.index.has.includes(NEEDS[page]);

  function failed(error) {
    if (!(error instanceof site.NotFound)) console.error(error);
    const home = site.el("a", { href: "#/" }, "the first page");
    return { title: error instanceof site.NotFound ? "Not found" : "This page cannot be shown", content: [site.el("p", {}, error.message, " Go to ", home, ".")] };
  }

  function navigation() {
    if (!site.index) return;
    const here = path().split(/[/?]/)[0];
    const links = NAVIGATION.filter(([, page]) => isHere(page)).map(([text, to]) =>
      site.el("li", {}, site.el("a", { href: "#/" + to, "aria-current": to === here ? "page" : null }, !to && site.index.benchmarks.length === 1 ? "Benchmark" : text)),
    );
    document.querySelector("nav ul").replaceChildren(...links);
    document.querySelector("footer").textContent =
      `Written by wordnet-splits ${site.index.version}. Nodes, names and glosses: ${site.hierarchies().join(", ").replace("WordNet", "Princeton WordNet")}.`;
  }

  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // an address of its own would be another page
    main.focus();
  });
  addEventListener("hashchange", show);
  show();
}
