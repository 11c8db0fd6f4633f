"use strict";
// The field's table of one benchmark, and every figure of all entries, each with the commands that repeat it.
{
  site.views.leaderboard = async (_, query) => {
    const data = await site.load("leaderboard");
    data.list ??= site.rows(data.rows).map((row) => ({ ...row, over: level(row, data.entries[row.entry]) }));
    return query.has("metric") ? figures(data, query) : field(data, query);
  };

  /** A row a detector on a model: accuracy, means of AUROC and FPR95 over near and over far sets. */
  function field(data, query) {
    const counts = Map.groupBy(data.list, (row) => data.entries[row.entry].benchmark);
    const roles = (name) => ["near", "far"].filter((role) => counts.get(name).some((row) => row.role === role)).length;
    const local = (name) => Number(name.includes("@"));
    const order = (a, b) => local(a) - local(b) || roles(b) - roles(a) || counts.get(b).length - counts.get(a).length || a.localeCompare(b);
    const names = [...counts.keys()].sort(order);
    if (!names.length) return { title: "Leaderboard", content: [site.el("p", {}, "No entry is of a benchmark of this site. ", elsewhere(data))] };
    const name = names.includes(query.get("benchmark")) ? query.get("benchmark") : names[0];
    const noise = data.noise[name];
    const fpr = data.fpr[name];
    const one = (row) => data.entries[row.entry];
    const byRow = Map.groupBy(counts.get(name).filter((row) => row.detector !== "(model)"), (row) => [row.entry, row.model, row.detector, row.params].join("\n"));
    const rows = [...byRow.values()].map((all) => ({ ...all[0], mean: (role, metric) => mean(all, role, metric, noise) }));
    const fullSpectrum = rows.some((row) => ["near", "far"].some((role) => row.mean(role, "auroc[full-spectrum]")));
    const lacks = (row) => lacking(one(row), (part) => !noise.includes(part.group) && (fullSpectrum || part.role !== "csid") && part.role !== "external").join("; ");
    const tables = byLack(rows, lacks).map(([lack, those]) => {
      const columns = columnsOf(those, one, fpr, data);
      const sorted = Math.max(columns.findIndex((column) => column.title.endsWith("AUROC")), 0);
      const options = { caption: lack ? `${name}: ${lack}` : name, sort: [sorted, "descending"], more: { title: "Repeat it", content: (row) => repeat(one(row)) } };
      return { lack, table: site.table(columns, those, options) };
    });
    const incomplete = tables.filter(({ lack }) => lack).map(({ table }) => table);
    const sets = (role) => [...new Set(counts.get(name).filter((row) => row.role === role && !row.group.startsWith("(") && !noise.includes(row.group)).map((row) => row.group))];
    const shown = ["near", "far"].filter((role) => sets(role).length).map((role) => `${role}: ${sets(role).join(", ")}`);
    const mine = data.entries.filter((entry) => entry.benchmark === name);
    return {
      title: "Leaderboard",
      content: [
        site.el("div", { class: "tools" }, site.select("Benchmark", names, name, (value) => (location.hash = `#/leaderboard?benchmark=${encodeURIComponent(value)}`))),
        site.el("p", { class: "note" },
          `In %. Means over sets (${shown.join("; ")}). In brackets: the bootstrap interval of a single run, over test images unless it says otherwise; ±: the deviation over runs. FPR95: ${fpr.includes("ood") ? "OOD" : "ID"} is positive. `,
          noise.length ? `Noise (${noise.join(", ")}) is not part of these means; a mean over other sets is then without interval. ` : null,
          sets("csid").length ? `Full-spectrum counts ${sets("csid").join(", ")} as ID. ` : null,
          site.el("a", { href: `#/leaderboard?metric=auroc&benchmark=${encodeURIComponent(name)}` }, "Every metric and set"), "."),
        tables[0].lack ? site.el("p", {}, `No entry scored every set of ${name}.`) : tables[0].table,
        incomplete.length ? site.section("Entries that lack sets", site.el("p", { class: "note" }, INCOMPLETE), incomplete) : null,
        ...entriesOf(mine, data),
      ],
    };
  }

  const INCOMPLETE = "Means are over the scored images alone, so they are comparable only within a table, not with complete entries.";

  /** Rows by missing sets, those with the fewest missing sets first. */
  function byLack(rows, lacks) {
    const groups = Map.groupBy(rows, lacks);
    const size = ([lack]) => (lack ? lack.split("; ").length : 0);
    return [...groups].sort((a, b) => size(a) - size(b));
  }

  /** The columns of the field's table that have a value. */
  function columnsOf(rows, one, fpr, data) {
    const columns = [
      { title: "Detector", key: detector, cell: (row) => [detector(row), chip(data.fitted_on_outliers.includes(row.detector.split("[")[0]), "fitted on OOD validation images")], text: true },
      { title: "Model", key: (row) => row.model, cell: (row) => [row.model.split("/").pop(), chip(one(row).outliers, one(row).outliers), chip(one(row).told, one(row).told, "told names")], text: true },
    ];
    const add = (title, role, metric) => rows.some((row) => (row.mean(role, metric)?.value ?? null) !== null) && columns.push({
      title,
      key: (row) => row.mean(role, metric)?.value ?? null,
      cell: (row) => percent(row.mean(role, metric)),
      number: metric.startsWith("fpr") ? "ascending" : true,
    });
    add("ID accuracy", "id", "accuracy");
    for (const [role, title] of [["near", "Near"], ["far", "Far"]]) {
      add(`${title} AUROC`, role, "auroc");
      add(`${title} FPR95`, role, fpr);
    }
    for (const role of ["near", "far"]) add(`Full-spectrum ${role} AUROC`, role, "auroc[full-spectrum]");
    columns.push(site.counts("Runs", "runs"));
    return columns;
  }

  /** The mean over the sets of a role without noise; its interval is that of the results, or of the only set. */
  function mean(all, role, metric, noise) {
    if (role === "id") return all.find((row) => row.metric === metric && row.role === "id" && row.group === "(pooled)") ?? null;
    const found = all.filter((row) => row.metric === metric && row.role === role);
    const sets = found.filter((row) => !row.group.startsWith("("));
    const kept = sets.filter((row) => !noise.includes(row.group));
    if (kept.length === sets.length) return found.find((row) => row.group === "(mean)") ?? null;
    if (kept.length < 2) return kept[0] ?? null;
    const values = kept.map((row) => row.value);
    return values.includes(null) ? null : { value: values.reduce((a, b) => a + b) / values.length, sd: null, lo: null, hi: null };
  }

  function percent(row) {
    if (!row || row.value === null) return "–";
    const [value, sd, lo, hi] = [row.value, row.sd, row.lo, row.hi].map((x) => x !== null && (100 * x).toFixed(2));
    if (sd) return `${value} ± ${sd}`;
    return [value, lo && site.el("small", {}, `[${lo}, ${hi}]${row.over}`)].filter(Boolean);
  }

  /** The level of a row's interval, if it is not over images. */
  const level = (row, one) => (one.over === "images" || ["id", "csid"].includes(row.role) ? "" : ` over ${one.over}`);

  const chip = (marked, title, text = "outliers") => marked ? site.el("span", { class: "chip", title }, text, site.el("span", { class: "unseen" }, `: ${title}`)) : null;

  const elsewhere = ({ elsewhere: n }) => n ? `${site.plural(n, "entry is", "entries are")} of other benchmarks, and on their sites.` : "";

  const entriesOf = (entries, { refused, ...data }) => [
    site.section("Entries", site.el("ul", { class: "cards" }, entries.map((one) => site.el("li", {}, site.el("h3", {}, one.name), summary(one), entry(one)))), elsewhere(data) ? site.el("p", { class: "note" }, elsewhere(data)) : null),
    refused.length ? site.section("Refused entries", site.list(refused.map((entry) => `${entry.name}: ${entry.reason}`))) : null,
  ];

  /** Every figure of one metric. */
  function figures(data, query) {
    const { entries, list: rows, metrics } = data;
    const names = [...new Set(rows.map((row) => row.metric))].sort();
    const first = names.includes("auroc") ? "auroc" : names[0];
    const metric = names.includes(query.get("metric")) ? query.get("metric") : first;
    const about = metrics[metric] ?? metrics[metric?.split("[")[0]];
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
    const better = about ? about.better : "higher";
    const sense = better === null ? "Neither end is better." : `${better === "higher" ? "Higher" : "Lower"} is better.`;
    return {
      title: "Leaderboard",
      content: [
        site.el("p", {}, site.el("a", { href: "#/leaderboard" }, "The table of one benchmark"), ". Results of different benchmarks, or of other networks, are beside each other to be found, not to be ranked. What an entry did not score is said in it."),
        site.el("div", { class: "tools" }, pick),
        site.el("p", { class: "note" }, about ? `${about.title} ${sense}` : "", " Values are fractions; ± is the deviation over runs, the range in brackets the interval of a single run, over test images unless it says otherwise."),
        site.filtered(told, ofMetric, choices, query, {
          caption: `Results by ${metric}`,
          more: { title: "Repeat it", content: (row) => repeat(entries[row.entry]) },
          sort: [3, better === "higher" ? "descending" : "ascending"],
        }),
        ...entriesOf(entries, data),
      ],
    };
  }

  function detector(row) {
    const given = Object.entries(JSON.parse(row.params || "{}")).filter(([, x]) => x !== "").map(([name, x]) => `${name}=${typeof x === "object" ? JSON.stringify(x) : x}`);
    return given.length && !row.detector.includes("[") ? `${row.detector}[${given.join(",")}]` : row.detector;
  }

  /** The sets, of those that are asked for, that an entry did not score whole. */
  const lacking = (one, isAsked) =>
    site
      .rows(one.sets)
      .filter((part) => part.scored !== part.expected && isAsked(part))
      .map((part) => (part.scored ? `${site.count(part.scored)} of ${site.count(part.expected)} of ${part.group}` : `no ${part.group}`));

  /** What of the sets of a value was not scored. */
  function unscored(row, one) {
    const roles = row.role.split("+");
    const isOfRow = (part) => (row.group.startsWith("(") ? roles.includes(part.role) : part.group === row.group);
    const short = lacking(one, (part) => isOfRow(part) || (/full/.test(row.metric) && part.role === "csid"));
    return short.length ? site.el("small", { class: "differs" }, short.join(", ")) : null;
  }

  /** The set of a row, and what of it was not scored. */
  function set(row, one) {
    const pooled = row.group.startsWith("(");
    const name = pooled ? `${row.role} ${row.group}` : row.group;
    const named = site.index.roles.includes(row.role) ? site.badge(row.role, name) : name;
    return [named, unscored(row, one)];
  }

  function value(row) {
    if (row.value === null) return null;
    const figure = site.figure(row.value);
    if (row.sd !== null) return `${figure} ± ${site.figure(row.sd)}`;
    return row.lo === null ? figure : `${figure} [${site.figure(row.lo)}, ${site.figure(row.hi)}]${row.over}`;
  }

  function benchmark(one) {
    const here = site.index.benchmarks.some((known) => known.name === one.benchmark);
    return here ? site.link(one.benchmark, "benchmark", one.benchmark) : one.benchmark;
  }

  const summary = (one) => [
    site.el("p", {}, benchmark(one), ` version ${one.version}, by `, site.outward(one.by, one.url)),
    one.note ? site.el("p", { class: "note" }, one.note) : null,
    one.outliers ? site.el("p", { class: "note" }, `Trained on outliers: ${one.outliers}`) : null,
    one.told ? site.el("p", { class: "note" }, one.told) : null,
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
