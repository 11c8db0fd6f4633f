"use strict";
// A class in a benchmark: its role and why, how near it is to what is known, its roles elsewhere.
{
  const MEASURES = [
    ["distance", 0, "edges between the two; fewer is nearer"],
    ["path", 4, "1 / (distance + 1)"],
    ["wup", 4, "Wu and Palmer: the depth of where they meet, against their own"],
    ["lch", 4, "Leacock and Chodorow: minus the logarithm of the path, against twice the depth of the hierarchy"],
    ["mean", 4, "the mean of path, wup and lch, each from 0 to 1: what chooses the nearest class"],
  ];

  site.views.class = async ([name, source, classId]) => {
    const about = site.about(name);
    const [data, synsets, search] = await Promise.all([
      site.load(`benchmark/${name}`),
      site.synsets(),
      site.load("search"),
    ]);
    const table = data.classes;
    const row = table.class_id.findIndex((id, at) => id === classId && table.source[at] === source);
    if (row < 0) throw new site.NotFound(`${name} has no class ${classId} of ${source}.`);
    const role = site.index.roles[table.role[row]];
    const synset = table.synset[row];
    return {
      title: `${table.name[row]} in ${name}`,
      heading: table.name[row],
      content: [
        site.el("p", { class: "lead" }, site.badge(role, site.roleTitle(role)), " in ", site.link(name, "benchmark", name)),
        site.el("blockquote", {}, table.evidence[row]),
        site.facts([
          ["Source", source],
          ["Class id", site.el("code", {}, classId)],
          ["Set", table.group[row] || "none"],
          ["Label", table.label[row] < 0 ? null : table.label[row]],
          [about.node === "synset" ? "Synset" : "Node", synset === null ? "none" : synsets.full(synset)],
          ["Rule", data.rules[table.rule[row]]],
          ["Other readings", otherReadings(data.readings, row, role)],
        ]),
        sampleImages(data, row),
        nearest(about, table, row, synsets),
        site.index.benchmarks.length < 2 ? null : elsewhere(search, source, classId, name),
      ],
    };
  };

  /** In how many other readings of the rules a class keeps its role, and its role in each. */
  function otherReadings(readings, row, role) {
    if (!readings || readings.absent) return readings?.absent;
    if (readings.why[row]) return `none applies: ${readings.why[row]}`;
    const judged = readings.role[row]; // before a draw, which may not have taken the class
    const applied = readings.roles[row].flatMap((other, at) => (other === null ? [] : [[readings.meanings[at], other]]));
    const agreeing = applied.filter(([, other]) => other === judged).length;
    const subject = judged === role ? "the role holds" : `${site.roleTitle(judged)} before the draw holds`;
    const roles = applied.map(([meaning, other]) => `${meaning}: ${other.split("/").map(site.roleTitle).join(" or ")}`);
    return site.el("details", {}, site.el("summary", {}, `${subject} in ${agreeing} of ${applied.length}`), site.list(roles));
  }

  function sampleImages(data, row) {
    const isSource = (credit) => credit.source === data.classes.source[row];
    return data.images[row].length
      ? site.section("Sample images", site.thumbnails(data, row), data.credits.filter(isSource).map(site.credit))
      : null;
  }

  function nearest(about, table, row, synsets) {
    const title = table.role[row] === site.index.roles.indexOf("id") ? "Nearest other ID class" : "Nearest ID class";
    if (table.nearest_id[row] === null) {
      return site.section(title, site.el("p", {}, `There is none: without a ${about.node} a class has no distance.`));
    }
    const other = table.nearest[row];
    const known =
      other === null ? table.nearest_id[row] : site.link(table.name[other], "class", about.name, table.source[other], table.class_id[other]);
    const way = table.way[row]?.map((synset) => ({ text: synsets.word(synset), full: synsets.full(synset) }));
    const measures = MEASURES.map(([measure, digits, told]) => ({ measure, value: site.figure(table[measure][row], digits), told }));
    const columns = [
      site.column("Measure", "measure"),
      site.column("Value", "value", "number"),
      site.column("What it is", "told", "text"),
    ];
    return site.section(
      title,
      site.el("p", { class: "lead" }, known),
      way ? site.way(way, table.lcs_at[row], [site.index.roles[table.role[row]], "id"]) : null,
      site.table(columns, measures, { caption: "How near it is", sortable: false }),
    );
  }

  function elsewhere(search, source, classId, name) {
    const rows = [...search.class_id.keys()].filter((n) => search.class_id[n] === classId && search.source[search.source_at[n]] === source);
    const others = rows.flatMap((n) => search.in[n]).filter(([benchmark]) => search.benchmark[benchmark] !== name);
    const told = others.length ? site.roleLinks(search, rows[0], others) : site.el("p", {}, "It is in no other benchmark here.");
    return site.section("In other benchmarks", told);
  }

  /** The benchmarks of a class of the search, role by role, each a link to its page there. */
  site.roleLinks = (search, at, places) => {
    const link = ([benchmark]) =>
      site.link(search.benchmark[benchmark], "class", search.benchmark[benchmark], search.source[search.source_at[at]], search.class_id[at]);
    return site.el(
      "ul",
      { class: "roles" },
      site.index.roles.map((role, number) => {
        const those = places.filter((place) => place[2] === number);
        const links = those.flatMap((place, n) => (n ? [", ", link(place)] : [link(place)]));
        return those.length ? site.el("li", {}, site.badge(role, `${site.roleTitle(role)}: `), links) : null;
      }),
    );
  };
}
