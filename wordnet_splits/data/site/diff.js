"use strict";
// Two benchmarks: the classes that have another role or set, or that only one of them has.
{
  const KINDS = {
    role: "another role",
    set: "the same role, another set",
    a: "only in the first",
    b: "only in the second",
  };

  site.views.diff = async ([a, b], query) => {
    const names = site.index.benchmarks.map((one) => one.name);
    if (a) site.about(a);
    if (b) site.about(b);
    const go = (first, second) => (location.hash = site.to(...["diff", first, second].filter(Boolean)));
    const choice = (label, chosen, changed) => site.select(label, [["", "choose"], ...names], chosen ?? "", changed);
    const form = site.el(
      "div",
      { class: "tools" },
      choice("First", a, (name) => name && go(name, b)),
      choice("Second", b, (name) => name && go(a ?? names[0], name)),
    );
    if (!a || !b) return { title: "Compare two benchmarks", content: [form] };
    const [first, second] = await Promise.all([a, b].map((name) => site.load(`benchmark/${name}`)));
    const rows = differences(first.classes, second.classes);
    return { title: `${a} and ${b}`, content: [form, shown(rows, a, b, query)] };
  };

  function byClass(table) {
    const found = new Map();
    table.class_id.forEach((id, row) => found.set(JSON.stringify([table.source[row], id]), row));
    return found;
  }

  function differences(a, b) {
    const [inA, inB] = [byClass(a), byClass(b)];
    const rows = [];
    for (const key of new Set([...inA.keys(), ...inB.keys()])) {
      const [x, y] = [inA.get(key), inB.get(key)];
      const kind = x === undefined ? "b" : y === undefined ? "a" : a.role[x] !== b.role[y] ? "role" : a.group[x] !== b.group[y] ? "set" : null;
      if (!kind) continue;
      const [table, row] = x === undefined ? [b, y] : [a, x];
      rows.push({
        kind,
        source: table.source[row],
        class_id: table.class_id[row],
        name: table.name[row],
        roles: [x === undefined ? null : site.index.roles[a.role[x]], y === undefined ? null : site.index.roles[b.role[y]]],
        sets: [x === undefined ? "" : a.group[x], y === undefined ? "" : b.group[y]],
      });
    }
    const order = Object.keys(KINDS);
    const unused = (row) => row.roles.every((role) => role === null || role === "excluded");
    return rows.sort((x, y) => unused(x) - unused(y) || order.indexOf(x.kind) - order.indexOf(y.kind)); // stable
  }

  function shown(rows, a, b, query) {
    if (!rows.length) return site.el("p", {}, "Every class has the same role and is in the same set in both.");
    const at = (column, name) => ({
      title: name,
      key: (row) => row.roles[column],
      cell: (row) => {
        const role = row.roles[column];
        if (!role) return "not there";
        const told = row.sets[column] ? `${site.roleTitle(role)}, ${row.sets[column]}` : site.roleTitle(role);
        return site.badge(role, site.link(told, "class", name, row.source, row.class_id));
      },
    });
    const columns = [
      site.column("Class", "name"),
      at(0, a),
      at(1, b),
      site.column("Source", "source"),
      site.column("Class id", "class_id"),
      { title: "What differs", key: (row) => KINDS[row.kind] },
    ];
    const kinds = Object.keys(KINDS).filter((kind) => rows.some((row) => row.kind === kind));
    const count = (kind) => rows.filter((row) => row.kind === kind).length;
    const of = (kind) => (kind ? rows.filter((row) => row.kind === kind) : rows);
    const chosen = kinds.includes(query.get("kind")) ? query.get("kind") : "";
    const table = site.table(columns, of(chosen), { caption: "Classes that differ" });
    const options = [["", `all (${site.count(rows.length)})`], ...kinds.map((kind) => [kind, `${KINDS[kind]} (${site.count(count(kind))})`])];
    const changed = (kind) => {
      table.update(of(kind));
      site.keep({ kind });
      site.say(`${site.plural(of(kind).length, "class", "classes")} shown`);
    };
    return [
      site.el("p", {}, `${site.plural(rows.length, "class differs", "classes differ")}.`),
      site.el("div", { class: "tools" }, site.select("What differs", options, chosen, changed)),
      table,
    ];
  }
}
