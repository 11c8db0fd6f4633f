"use strict";
// Results of all entries: sortable, filtered, each with its fingerprints and the commands that repeat it.
{
  site.views.leaderboard = async (_, query) => {
    const { entries, refused, rows: columns, metrics } = await site.load("leaderboard");
    const rows = site.rows(columns);
    const names = [...new Set(rows.map((row) => row.metric))].sort();
    const first = names.includes("auroc") ? "auroc" : names[0];
    const metric = names.includes(query.get("metric")) ? query.get("metric") : first;
    const about = metrics[metric] ?? metrics[metric.split("[")[0]];
    const ofMetric = rows.filter((row) => row.metric === metric);
    const setOf = (row) => (row.group.startsWith("(") ? `${row.role} ${row.group}` : row.group);
    const told = [
      { title: "Model", key: (row) => row.model, cell: (row) => row.model.split("/").pop(), text: true },
      { title: "Detector", key: detector, text: true },
      { title: "Set", key: setOf, cell: (row) => set(row, entries[row.entry]) },
      { title: "Value", key: (row) => row.value, cell: value, number: true },
      site.counts("Runs", "runs"),
      { title: "Benchmark", key: (row) => entries[row.entry].benchmark, cell: (row) => benchmark(entries[row.entry]) },
    ];
    const choices = [
      { label: "Benchmark", any: "every benchmark", name: "benchmark", key: (row) => entries[row.entry].benchmark },
      { label: "Detector", any: "every detector", name: "detector", key: (row) => row.detector },
      { label: "Set", any: "every set", name: "set", key: setOf },
    ];
    const pick = site.select("Metric", names, metric, (name) => {
      query.set("metric", name);
      for (const { name: key } of choices) site.parameter(key) ? query.set(key, site.parameter(key)) : query.delete(key);
      location.hash = `#/leaderboard?${query}`;
    });
    const better = about?.better ?? "higher";
    return {
      title: "Leaderboard",
      content: [
        site.el("p", {}, "Results of different benchmarks, or of other networks, are beside each other to be found, not to be ranked. What an entry did not score is said in it."),
        site.el("div", { class: "tools" }, pick),
        site.el("p", { class: "note" }, about ? `${about.title} ${better === "higher" ? "Higher" : "Lower"} is better.` : "", " Values are fractions; ± is the deviation over runs, the range in brackets that of a single run."),
        site.filtered(told, ofMetric, choices, query, {
          caption: `Results by ${metric}`,
          more: { title: "Repeat it", content: (row) => repeat(entries[row.entry]) },
          sort: [3, better === "higher" ? "descending" : "ascending"],
        }),
        site.section("Entries", site.el("ul", { class: "cards" }, entries.map((one) => site.el("li", {}, site.el("h3", {}, one.name), summary(one), entry(one))))),
        refused.length ? site.section("Refused entries", site.list(refused.map((entry) => `${entry.name}: ${entry.reason}`))) : null,
      ],
    };
  };

  function detector(row) {
    const given = Object.entries(JSON.parse(row.params || "{}")).map(([name, x]) => `${name}=${typeof x === "object" ? JSON.stringify(x) : x}`);
    return given.length && !row.detector.includes("[") ? `${row.detector}[${given.join(",")}]` : row.detector;
  }

  /** The set of a row, and what of it, or of the sets pooled in it, was not scored. */
  function set(row, one) {
    const pooled = row.group.startsWith("(");
    const roles = row.role.split("+");
    const short = site
      .rows(one.sets)
      .filter((part) => part.scored !== part.expected && (pooled ? roles.includes(part.role) : part.group === row.group))
      .map((part) => (part.scored ? `${site.count(part.scored)} of ${site.count(part.expected)} of ${part.group}` : `no ${part.group}`));
    const name = pooled ? `${row.role} ${row.group}` : row.group;
    const named = site.index.roles.includes(row.role) ? site.badge(row.role, name) : name;
    return [named, short.length ? site.el("small", { class: "differs" }, short.join(", ")) : null];
  }

  function value(row) {
    if (row.value === null) return null;
    const figure = site.figure(row.value);
    if (row.sd !== null) return `${figure} ± ${site.figure(row.sd)}`;
    return row.lo === null ? figure : `${figure} [${site.figure(row.lo)}, ${site.figure(row.hi)}]`;
  }

  function benchmark(one) {
    const here = site.index.benchmarks.some((known) => known.name === one.benchmark);
    return here ? site.link(one.benchmark, "benchmark", one.benchmark) : one.benchmark;
  }

  const summary = (one) => [
    site.el("p", {}, benchmark(one), ` version ${one.version}, by `, site.outward(one.by, one.url)),
    one.note ? site.el("p", { class: "note" }, one.note) : null,
    one.missing.length ? site.el("p", { class: "differs" }, one.missing.join("; ")) : null,
  ];

  /** What an entry was made with, made when it is opened. */
  function entry(one) {
    const details = site.el("details", {}, site.el("summary", {}, "Repeat it"));
    details.addEventListener("toggle", () => details.childElementCount === 1 && details.append(...repeat(one)));
    return details;
  }

  function repeat(one) {
    const print = (fingerprint) => fingerprint && site.el("code", {}, fingerprint);
    const sets = site.rows(one.sets);
    return [
      site.facts([
        ["Entry", one.name],
        ["Images", print(one.images)],
        ["Evaluation", print(one.evaluation)],
        ["Classes", print(one.classes)],
        ["Missing", one.missing.length ? site.list(one.missing) : "nothing"],
      ]),
      site.el("p", {}, "Commands:"),
      site.code(one.commands.join("\n")),
      site.el("p", {}, "Sets, with the fingerprint of what was seen:"),
      site.list(sets.map((set) => [site.badge(set.role, `${set.group}: ${site.count(set.scored)} of ${site.count(set.expected)} images `), print(set.seen)])),
      site.el("p", {}, "Networks:"),
      site.list(site.rows(one.networks).map((network) => [`${network.model} `, print(network.model_key)])),
    ];
  }
}
