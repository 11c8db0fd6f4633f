"use strict";
// Distances between sets, the audit of published lists, fidelity to the papers.
{
  /** A table with choices above it: [{label, any, key: row => value, name}]; the choices are kept in the address. */
  site.filtered = (columns, rows, choices, query, options) => {
    const chosen = {};
    const fits = (row) => choices.every(({ name, key }) => chosen[name] === "" || String(key(row)) === chosen[name]);
    const tools = choices.map(({ label, any, name, key, text, values }) => {
      const found = values ?? [...new Set(rows.map((row) => String(key(row))))].sort();
      const asked = query.get(name);
      chosen[name] = found.includes(asked) ? asked : "";
      const named = [["", any], ...found.map((value) => [value, text?.(value) ?? value])];
      return site.select(label, named, chosen[name], (value) => {
        chosen[name] = value;
        table.update(show());
        site.say(count.textContent);
        site.keep({ [name]: value });
      });
    });
    const count = site.el("p", { class: "note" });
    const table = site.table(columns, show(), options);

    function show() {
      const fitting = rows.filter(fits);
      count.textContent = site.plural(fitting.length, "row");
      options.changed?.(chosen);
      return fitting;
    }

    return [site.el("div", { class: "tools" }, tools), count, table];
  };

  site.views.sets = async (_, query) => {
    const data = await site.load("distances");
    const rows = site.rows(data.rows);
    const asked = query.get("measure");
    const measure = data.measures.includes(asked) ? asked : data.measures[0];
    const most = Math.max(...rows.filter((row) => row.measure === measure).map((row) => row.max ?? 0), 1e-9);
    const digits = measure === "distance" ? 1 : 3;
    const figure = (title, name) => ({ ...site.column(title, name, "number"), cell: (row) => row[name] === null ? null : site.figure(row[name], digits) });
    const columns = [
      { ...site.column("Benchmark", "benchmark"), cell: (row) => site.link(row.benchmark, "benchmark", row.benchmark) },
      { title: "Set", key: (row) => row.group, cell: (row) => site.badge(row.role, row.group) },
      { title: `From 0 to ${site.figure(most, digits)}`, key: (row) => row.median, cell: (row) => box(row, most) },
      ...["min", "q1", "median", "q3", "max"].map((name) => figure(name, name)),
      site.counts("classes", "classes"),
      site.counts("without a node", "unmapped"),
    ];
    const conclusions = site.el("div", { role: "status" });
    const changed = ({ benchmark }) =>
      conclusions.replaceChildren(...(data.conclusions[benchmark] ?? []).map((line) => site.el("p", {}, line)));
    const links = data.measures.map((one) => site.el("a", { href: `#/sets?measure=${one}`, "aria-current": one === measure ? "true" : null }, one));
    const choices = [{ label: "Benchmark", any: "every benchmark", name: "benchmark", key: (row) => row.benchmark }];
    const shown = rows.filter((row) => row.measure === measure);
    return {
      title: "Distances between sets",
      content: [
        site.el("p", {}, data.about),
        site.el("p", { class: "toggles" }, "Measure: ", links),
        site.filtered(columns, shown, choices, query, { caption: `Quartiles of ${measure} to the nearest ID class`, changed }),
        conclusions,
      ],
    };
  };

  /** A box from the lower to the upper quartile, with the median and both ends. */
  function box(row, most) {
    if (row.median === null) return null;
    const at = (x) => 2 + (156 * x) / most;
    const line = (x, top, bottom) => site.svg("path", { d: `M${at(x)} ${top}V${bottom}` });
    return site.svg(
      "svg",
      { class: `box ${row.role}`, viewBox: "0 0 160 20", width: 160, height: 20, "aria-hidden": "true" },
      site.svg("path", { d: `M${at(row.min)} 10H${at(row.max)}` }),
      site.svg("rect", { x: at(row.q1), y: 4, width: Math.max(1, at(row.q3) - at(row.q1)), height: 12 }),
      line(row.min, 6, 14),
      line(row.max, 6, 14),
      site.svg("path", { class: "median", d: `M${at(row.median)} 2V18` }),
    );
  }

  site.views.audit = async (_, query) => {
    const data = await site.load("audit");
    const lists = site.rows(data.lists);
    const leaks = site.rows(data.leaks);
    const names = lists.map((one) => one.list);
    const class_ = (id, name, gloss) => (row) => [
      site.el("b", {}, row[name] ?? ""),
      site.el("code", {}, ` ${row[id]}`),
      row[gloss] ? site.el("small", {}, row[gloss]) : null,
    ];
    const ofLists = [
      site.column("List", "list", "text"),
      site.column("Against", "against"),
      { ...site.counts("Classes", "classes"), cell: (row) => row.classes === null ? "leaks only" : site.count(row.classes) },
      ...["equal", "below", "above", "namesake"].map((name) => site.counts(name, name)),
      site.column("Licence", "licence"),
      site.column("From", "origin", "text"),
    ];
    const ofLeaks = [
      { title: "Class", key: (row) => row.name, cell: class_("class_id", "name", "gloss"), text: true },
      site.column("is", "relation"),
      { title: "Known class", key: (row) => row.known_name, cell: class_("known", "known_name", "known_gloss"), text: true },
      site.counts("Edges", "edges"),
      { title: "Path", key: (row) => row.path, cell: (row) => row.path && site.el("code", {}, row.path), text: true },
      { title: "List", key: (row) => names[row.list], text: true },
    ];
    const choices = [
      { label: "List", any: "every list", name: "list", key: (row) => row.list, values: names.map((_, at) => String(at)), text: (at) => names[at] },
      { label: "Relation", any: "every relation", name: "relation", key: (row) => row.relation },
    ];
    return {
      title: "Audit of published lists",
      content: [
        site.el("p", {}, data.about),
        site.table(ofLists, lists, { caption: "Lists, and how many of their classes touch a known one" }),
        site.section("Leaks", site.filtered(ofLeaks, leaks, choices, query, { caption: "Classes that touch a known one" })),
      ],
    };
  };

  site.views.fidelity = async (_, query) => {
    const data = await site.load("fidelity");
    const columns = [
      site.column("Paper", "paper"),
      site.column("What", "what", "text"),
      site.counts("Published", "published"),
      site.counts("Ours", "ours"),
      {
        title: "Same",
        key: (row) => (row.published === null ? null : row.published === row.ours ? "=" : "≠"),
        cell: (row) => (row.published === null ? null : row.published === row.ours ? "yes" : site.el("span", { class: "differs" }, "no")),
      },
      site.column("Why", "why", "text"),
    ];
    const choices = [{ label: "Paper", any: "every paper", name: "paper", key: (row) => row.paper }];
    return {
      title: "Fidelity to the papers",
      content: [
        site.el("p", {}, "What the papers publish beside what the rules give."),
        site.filtered(columns, site.rows(data.rows), choices, query, { caption: "Published and ours" }),
      ],
    };
  };
}
