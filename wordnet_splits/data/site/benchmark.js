"use strict";
// A benchmark: its sets beside the paper's, its classes as a tree, its rules and leaks.
{
  const MOST_OPEN = 60; // classes whose images are shown at once
  const UNSHOWN = "excluded"; // at first: it is often the most of the classes

  site.views.benchmark = async ([name], query) => {
    const about = site.about(name);
    const [data, synsets] = await Promise.all([site.load(`benchmark/${name}`), site.synsets()]);
    return {
      title: name,
      content: [
        site.el("p", { class: "lead" }, about.title),
        about.about.description ? site.el("p", {}, about.about.description) : null,
        site.roleBar(about.roles),
        site.facts([
          ["Classes", site.el("span", { class: "counts" }, site.roleCounts(about.roles))],
          ["State", site.state(about)],
          ["Version", about.version],
          ["Hierarchy", about.hierarchy],
          ["Paper", about.paper || paperTitle(about.about.paper)],
          ...attribution(about.about),
          ["Fingerprint", about.fingerprint && site.el("code", {}, about.fingerprint)],
          ["Compare", site.index.benchmarks.length > 1 ? site.link("with another benchmark", "diff", name) : null],
        ]),
        load(about),
        groups(about),
        sampleImages(about, data),
        classes(about, data, synsets, query),
        rules(about),
        about.leaks.length ? site.section("Known leaks", site.list(about.leaks)) : null,
        site.section("Build it", site.code(about.command)),
        site.section(
          "Cite it",
          site.el("details", {}, site.el("summary", {}, "BibTeX of the benchmark and its sources"), site.code(about.cite)),
        ),
      ],
    };
  };

  /** The title of a paper; a BibTeX entry is shown with the other citations. */
  const paperTitle = (paper) => (paper?.startsWith("@") ? "" : paper);

  /** What its authors say of a benchmark: who they are, and under which terms it is. */
  function attribution(about) {
    const author = ({ name, orcid, affiliation }) => [
      site.outward(name, orcid && `https://orcid.org/${orcid}`),
      affiliation ? `, ${affiliation}` : null,
    ];
    const notes = Object.entries(about.version_notes ?? {}).map(([version, note]) => `${version}: ${note}`);
    return [
      ["Authors", about.authors.length ? about.authors.flatMap((one, at) => [at ? "; " : null, ...author(one)]) : ""],
      ["Licence", site.outward(about.licence ?? "", about.licence_url)],
      ["DOI", about.doi && site.outward(about.doi, `https://doi.org/${about.doi}`)],
      ["Date", about.date],
      ["Page", about.url && site.outward(about.url, about.url)],
      ["Contact", site.outward(about.contact ?? "", about.contact)],
      ["Versions", notes.length ? site.list(notes) : ""],
      ["Limitations", about.limitations],
      ["Biases", about.biases],
      ["Personal information", about.personal_information],
      ["Use cases", about.use_cases],
      ["Social impact", about.social_impact],
    ];
  }

  /** The first lines of a user: where to get the benchmark, and how to read its images. */
  function load({ load: lines, download }) {
    if (!lines && !download) return null;
    const kilobytes = download && site.count(Math.ceil(download.bytes / 1000));
    const file = download && download.file.split("/").pop();
    return site.section(
      "Load it",
      download
        ? site.el("p", {}, site.el("a", { href: encodeURI(download.file), download: file }, `Download ${file}`), ` (${kilobytes} kB: classes, image ids and digests, no images) and unpack it. SHA-256: `, site.el("code", {}, download.sha256))
        : null,
      lines ? site.code(lines) : null,
    );
  }

  /** The thumbnails of a class, a list of small squares. */
  site.thumbnails = (data, row) => {
    const name = data.classes.name[row];
    const files = data.images[row];
    return site.el(
      "span",
      { class: "thumbnails" },
      files.map((src, at) =>
        site.el("img", { src: encodeURI(src), alt: `${name}, image ${at + 1} of ${files.length}`, width: 64, height: 64, loading: "lazy" }),
      ),
    );
  };

  site.credit = ({ source, title, authors, licence, url }) =>
    site.el("p", { class: "note" }, `${source}: `, site.outward(title, url), authors && ` by ${authors}`, `, ${licence}. Resized to 64 × 64 pixels.`);

  function sampleImages({ name }, data) {
    const rows = data.images.flatMap((files, row) => (files.length ? [row] : []));
    if (!rows.length && !data.withheld.length) return null;
    const { roles } = site.index;
    const { classes } = data;
    const cell = (row) =>
      site.el(
        "li",
        {},
        site.thumbnails(data, row),
        site.badge(roles[classes.role[row]], site.link(classes.name[row], "class", name, classes.source[row], classes.class_id[row])),
      );
    rows.sort((a, b) => classes.role[a] - classes.role[b] || a - b);
    return site.section(
      "Sample images",
      rows.length
        ? site.el("details", { open: rows.length <= MOST_OPEN }, site.el("summary", {}, `Images of ${site.plural(rows.length, "class", "classes")}`), site.el("ul", { class: "samples" }, rows.map(cell)))
        : null,
      data.credits.map(site.credit),
      data.withheld.map((sentence) => site.el("p", { class: "note" }, sentence)),
    );
  }

  function groups(about) {
    const rows = site.rows(about.groups);
    const splits = ["classes", "train", "val", "test"].filter((split) => rows.some((row) => row.split === split));
    const caption = rows.some((row) => row.published !== null)
      ? "Ours, and below it the paper's count where that is published"
      : "Classes and images of each set";
    const byGroup = Map.groupBy(rows, (row) => row.group);
    const columns = [
      { title: "Set", key: ([group]) => group },
      { title: "Role", key: ([, [row]]) => row.role, cell: ([, [row]]) => site.badge(row.role, site.roleTitle(row.role)) },
      { title: "Source", key: ([, [row]]) => row.source },
      ...splits.map((split) => {
        const of = ([, all]) => all.find((row) => row.split === split);
        const title = split === "classes" ? "Classes" : `Images, ${split}`;
        return { title, number: true, key: (group) => of(group)?.actual, cell: (group) => beside(of(group)) };
      }),
      { title: "State", key: ([, all]) => [...new Set(all.map((row) => row.status))].filter((s) => s !== "complete").join(", ") || "complete" },
    ];
    const notes = [...byGroup].flatMap(([group, all]) =>
      [...new Set(all.map((row) => row.note).filter(Boolean))].map((note) => `${group}: ${note}`),
    );
    return site.section(
      "Sets",
      site.table(columns, [...byGroup], { caption }),
      notes.length ? site.list(notes) : null,
    );
  }

  function beside(row) {
    if (!row) return null;
    const ours = site.el("span", {}, site.count(row.actual));
    if (row.published === null) return ours;
    const differs = row.actual !== null && row.published !== row.actual;
    const told = `${row.actual === null ? "" : differs ? "≠ " : "= "}${site.count(row.published)}`;
    return [ours, site.el("small", { class: differs ? "differs" : null }, site.el("span", { class: "unseen" }, " published "), told)];
  }

  function rules(about) {
    const transforms = Object.entries(about.transforms);
    return site.section(
      "Rules",
      site.el("p", { class: "note" }, "In this order: a class that one set has taken is not offered to the next."),
      site.facts(Object.entries(about.rules)),
      transforms.length ? [site.el("h3", {}, "Transforms"), site.facts(transforms)] : null,
    );
  }

  /** The tree's nodes: synsets, and a class as a node of its own where a synset has several. */
  function nodesOf({ tree, classes }, synsets) {
    const nodes = { parent: [], row: [], label: [], words: [] };
    const place = [];
    const add = (parent, row, label, words) => {
      nodes.label.push(label);
      nodes.row.push(row);
      nodes.words.push(words.toLowerCase());
      return nodes.parent.push(parent) - 1;
    };
    const words = (row) => `${classes.name[row]} ${classes.class_id[row]} ${classes.source[row]}`;
    tree.parent.forEach((parent, at) => {
      const synset = tree.synset[at];
      const label = synset === null ? tree.label[at] : synsets.word(synset);
      const known = synset === null ? label : `${synsets.table.name[synset]} ${synsets.table.wnid[synset]}`;
      const [only, ...others] = tree.rows[at];
      const single = only !== undefined && !others.length && synset !== null;
      place.push(add(parent < 0 ? -1 : place[parent], single ? only : null, label, single ? `${known} ${words(only)}` : known));
      if (!single) for (const row of tree.rows[at]) add(place[at], row, classes.name[row], words(row));
    });
    return nodes;
  }

  function classes(about, data, synsets, query) {
    const table = data.classes;
    const { roles } = site.index;
    const nodes = nodesOf(data, synsets);
    const n = nodes.parent.length;
    const isKept = new Uint8Array(n); // the node's own class, not only one below it
    const below = roles.map(() => new Int32Array(n)); // kept classes at or below a node, by role
    const inOrder = (chosen) => roles.filter((role) => chosen.has(role)).join(",");
    const usual = inOrder(new Set(Object.keys(about.roles).filter((role) => role !== UNSHOWN || !about.roles.id)));
    const pressed = new Set((query.get("roles") ?? usual).split(","));
    let filter = query.get("q") ?? "";
    let group = query.get("set") ?? "";
    const told = site.el("p", { class: "note" });
    const to = (row) => site.to("class", about.name, table.source[row], table.class_id[row]);

    const mix = (node) => {
      const counts = Object.fromEntries(roles.map((role, at) => [role, below[at][node]]));
      return site.el("span", { class: "mix" }, site.roleCounts(counts));
    };

    const tree = site.tree({
      parent: nodes.parent,
      label: `Classes of ${about.name}`,
      text: (node) => nodes.label[node],
      href: (node) => (nodes.row[node] === null ? null : to(nodes.row[node])),
      draw: (node) => {
        const row = nodes.row[node];
        if (!isKept[node]) return [site.el("span", { class: "synset" }, nodes.label[node]), mix(node)];
        return [
          site.badge(roles[table.role[row]]),
          site.el("a", { href: to(row), tabindex: "-1" }, table.name[row]),
          site.el("span", { class: "note" }, table.group[row] || table.source[row]),
          below.reduce((sum, counts) => sum + counts[node], 0) > 1 ? mix(node) : null,
        ];
      },
    });

    function keep() {
      const matched = site.matched(nodes.parent, nodes.words, filter);
      const kept = new Uint8Array(n);
      isKept.fill(0);
      below.forEach((counts) => counts.fill(0));
      nodes.row.forEach((row, node) => {
        if (row === null || !matched[node] || !pressed.has(roles[table.role[row]])) return;
        if (group && table.group[row] !== group) return;
        isKept[node] = 1;
        below[table.role[row]][node] = 1;
      });
      let total = 0;
      for (let node = n - 1; node >= 0; node -= 1) {
        for (const counts of below) {
          if (!counts[node]) continue;
          kept[node] = 1;
          if (nodes.parent[node] >= 0) counts[nodes.parent[node]] += counts[node];
          else total += counts[node];
        }
      }
      tree.keep(kept, filter.trim() !== "");
      told.textContent = `${site.count(total)} of ${site.plural(about.classes, "class", "classes")} shown`;
    }

    function changed() {
      keep();
      site.say(told.textContent);
      site.keep({ q: filter.trim(), set: group, roles: inOrder(pressed) === usual ? "" : inOrder(pressed) || "none" });
    }

    const names = [...new Set(table.group)].filter(Boolean).sort();
    const content = site.section(
      "Classes",
      site.legend(),
      site.roleToggles(about.roles, pressed, changed),
      site.treeTools(
        tree,
        site.input(`Filter by name${site.orNode()}`, filter, (text) => ((filter = text), changed())),
        site.select("Set", [["", "every set"], ...names], group, (value) => ((group = value), changed())),
      ),
      told,
      tree,
    );
    keep();
    return content;
  }
}
