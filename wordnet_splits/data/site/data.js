"use strict";
// Data are scripts that call site.add: a page opened from a disk may load scripts and nothing else.
{
  const asked = new Map();

  /** Take the data of a key: JSON in zlib's format, in base64. */
  site.add = (key, packed) => asked.get(key)?.take(unpacked(packed));

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(json).json();
  }

  /** The data of a key, loaded once. Only keys that the index vouches for may be asked for. */
  site.load = (key) => {
    if (!asked.has(key)) {
      const one = {};
      one.promise = new Promise((resolve, reject) => {
        const src = `data/${key.split("/").map(encodeURIComponent).join("/")}.js`;
        const lost = () => {
          asked.delete(key);
          reject(new Error(`${src} could not be loaded: is the folder whole?`));
        };
        let isTaken = false;
        one.take = (data) => {
          isTaken = true;
          data.then(resolve, lost);
        };
        document.head.append(site.el("script", { src, error: lost, load: () => isTaken || lost() }));
      });
      asked.set(key, one);
    }
    return asked.get(key).promise;
  };

  /** The first word of a synset, all its words, its wnid and its definition. */
  site.synsets = async () => {
    const table = await site.load("synsets");
    return {
      table,
      word: (number) => table.name[number].split(", ", 1)[0],
      full(number) {
        const [name, wnid, gloss] = [table.name[number], table.wnid[number], table.gloss[number]];
        return `${name === wnid ? name : `${name} (${wnid})`}${gloss && `: ${gloss}`}`;
      },
    };
  };

  /** The hierarchies of all benchmarks here, as "WordNet 3.0". */
  site.hierarchies = () => [...new Set(site.index.benchmarks.map((about) => about.hierarchy))];

  /** The end of a field's label: what a node of these hierarchies is found by, besides names. */
  site.orNode = () => (site.index.benchmarks.every((about) => about.node === "synset") ? ", synset or wnid" : " or node");

  /** The entry of a benchmark in the index. */
  site.about = (name) => {
    const found = site.index.benchmarks.find((one) => one.name === name);
    if (!found) throw new site.NotFound(`There is no benchmark ${name} here.`);
    return found;
  };

  site.NotFound = class extends Error {};

  /** The rows of a table of columns, as objects. */
  site.rows = (columns) => {
    const names = Object.keys(columns);
    return (columns[names[0]] ?? []).map((_, row) =>
      Object.fromEntries(names.map((name) => [name, columns[name][row]])),
    );
  };
}
