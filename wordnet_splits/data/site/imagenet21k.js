"use strict";
// ImageNet-21K as seen from ImageNet-1K: near or far at any threshold.
{
  const START = 0.5;
  const KIN = { below: "below a known class", above: "above a known class" };

  const akin = (text) => site.el("span", { class: "badged" }, site.el("span", { class: "badge leak", "aria-hidden": "true" }, "↕"), text);

  site.views.imagenet21k = async (_, query) => {
    const [data, synsets] = await Promise.all([site.load("imagenet21k"), site.synsets()]);
    const n = data.parent.length;
    const known = new Int32Array(n);
    const near = new Int32Array(n);
    const far = new Int32Array(n);
    const kin = new Int32Array(n);
    const labels = data.synset.map(synsets.word);
    const words = data.synset.map((synset) => `${synsets.table.name[synset]} ${synsets.table.wnid[synset]}`.toLowerCase());
    const free = (node) => data.class[node] && !data.known[node] && !data.kin[node];
    const leaks = (node) => !data.known[node] && Boolean(data.kin[node]);
    const asked = parseFloat(query.get("threshold"));
    let threshold = asked >= 0 && asked <= 1 ? asked : START;
    let filter = query.get("q") ?? "";
    const told = site.el("p");
    const kept = new Uint8Array(n);

    const tree = site.tree({
      parent: data.parent,
      label: "Classes of ImageNet-21K",
      text: (node) => labels[node],
      href: () => null,
      draw: (node) => [
        mark(node),
        site.el("span", { class: data.class[node] ? null : "synset", title: synsets.full(data.synset[node]) }, labels[node]),
        detail(node),
        mix(node),
      ],
    });

    function mark(node) {
      if (data.known[node]) return site.badge("id");
      if (leaks(node)) return site.el("span", { class: "badge leak", role: "img", "aria-label": KIN[data.kin[node]] }, data.kin[node] === "below" ? "↓" : "↑");
      if (!free(node) || data.mean[node] === null) return null;
      return site.badge(data.mean[node] >= threshold ? "near" : "far");
    }

    function detail(node) {
      if (data.mean[node] === null || data.known[node]) return null;
      const nearest = data.nearest[node];
      const to = nearest === null ? "" : ` to ${synsets.word(nearest)}`;
      return site.el("span", { class: "note" }, `${site.figure(data.mean[node], 3)}${to}`);
    }

    function mix(node) {
      const counts = { id: known[node], near: near[node], far: far[node] };
      if (counts.id + counts.near + counts.far + kin[node] < 2) return null;
      const leaking = kin[node] ? akin([site.count(kin[node]), site.el("span", { class: "unseen" }, " kin of known ones")]) : null;
      return site.el("span", { class: "mix" }, site.roleCounts(counts), leaking);
    }

    function count() {
      for (const counts of [known, near, far, kin]) counts.fill(0);
      const sums = { known: 0, near: 0, far: 0, kin: 0 };
      for (let node = n - 1; node >= 0; node -= 1) {
        if (data.known[node]) known[node] += 1;
        else if (leaks(node)) kin[node] += 1;
        else if (free(node) && data.mean[node] !== null) (data.mean[node] >= threshold ? near : far)[node] += 1;
        const above = data.parent[node];
        if (above < 0) {
          sums.known += known[node];
          sums.near += near[node];
          sums.far += far[node];
          sums.kin += kin[node];
        } else for (const counts of [known, near, far, kin]) counts[above] += counts[node];
      }
      told.replaceChildren(
        site.badge("id", `${site.count(sums.known)} known`),
        site.badge("near", `${site.count(sums.near)} near`),
        site.badge("far", `${site.count(sums.far)} far`),
        akin(`${site.count(sums.kin)} above or below a known class: they leak at any threshold`),
      );
      tree.redraw();
    }

    function keep() {
      const matched = site.matched(data.parent, words, filter);
      kept.set(matched);
      for (let node = n - 1; node >= 0; node -= 1) if (kept[node] && data.parent[node] >= 0) kept[data.parent[node]] = 1;
      tree.keep(kept, filter.trim() !== "");
      const shown = matched.reduce((sum, one, node) => sum + (one && data.class[node] ? 1 : 0), 0);
      if (filter.trim()) site.say(`${site.plural(shown, "class", "classes")} shown`);
    }

    const value = site.el("output", {}, threshold.toFixed(2));
    const slider = site.el("input", { type: "range", min: 0, max: 1, step: 0.01, value: threshold });
    slider.addEventListener("input", () => {
      threshold = Number(slider.value);
      value.textContent = threshold.toFixed(2);
      count();
    });
    slider.addEventListener("change", () => {
      site.keep({ threshold: slider.value });
      site.say(told.textContent);
    });
    const typed = (text) => {
      filter = text;
      keep();
      site.keep({ q: filter.trim() });
    };
    count();
    if (filter) keep();
    return {
      title: "ImageNet-21K",
      heading: "ImageNet-21K as seen from ImageNet-1K",
      content: [
        site.el("p", {}, "A class is near where the similarity ", site.el("code", {}, "mean"), " to its nearest known class is at least the threshold."),
        site.treeTools(
          tree,
          site.field(["Threshold ", value], slider),
          site.input("Filter by synset or wnid", filter, typed),
        ),
        site.el("div", { class: "counts" }, told),
        tree,
      ],
    };
  };
}
