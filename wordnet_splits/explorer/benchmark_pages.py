"""Pages of benchmarks: their entries in the index, their class tables and trees, and the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from wordnet_splits.base.about import About
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.text_formats import Role
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Group, is_shipped, load_recipe
from wordnet_splits.benchmark.rules.phrases import rule_words
from wordnet_splits.datasets.sources import source_class
from wordnet_splits.datasets.sources.by_name import paper_title
from wordnet_splits.explorer.columns import SynsetNumbers, class_tree, to_columns
from wordnet_splits.explorer.sample_images import Samples
from wordnet_splits.hub.attribution import cite_benchmark, licence_address
from wordnet_splits.studies.robust import BUILT_IN, MOST_READ, quick_roles
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

ROLES = (*get_args(Role), "excluded")
GROUP = ("group", "role", "source", "view", "split", "published", "expected", "actual", "status", "note")
CLASS = ("source", "class_id", "name", "group", "label", "evidence", "nearest_id", "distance")
MEASURES = ("path", "wup", "lch", "mean")


def index_entry(manifest: Manifest) -> dict[str, Any]:
    """Return the entry of a benchmark in the index.

    Benchmarks with the same ``family`` build the same paper; with the same ``draw``, they are variants.
    """
    recipe, taxonomy = load_recipe(manifest), taxonomy_of(manifest)
    rooted = sorted(name for name in recipe.sources if source_class(name, recipe.datasets).rooted)
    path = manifest.name if is_shipped(recipe) else f"./{manifest.name}"
    roots = "".join(f" --root {name}=DIR" for name in rooted)
    groups = ({name: getattr(row, name) for name in GROUP} for row in manifest.groups)
    return {
        "name": manifest.name,
        "version": manifest.version,
        "title": recipe.title,
        "paper": recipe.paper,
        "family": paper_title(recipe.paper) if recipe.paper else "",
        "draw": recipe.draw,
        "fingerprint": manifest.fingerprint,
        "hierarchy": taxonomy.title,
        "node": taxonomy.noun,
        "awaiting": list(manifest.data.awaiting),
        "complete": manifest.complete,
        "groups": to_columns(GROUP, groups),
        "classes": manifest.classes.num_rows,
        "roles": dict(sorted(Counter(manifest.classes["role"].to_pylist()).items())),
        "transforms": dict(recipe.transforms),
        "rules": {group.name: _rule_sentence(group, taxonomy.noun) for group in recipe.group},
        "leaks": [leak.sentence for leak in manifest.data.leaks],
        "about": _about(recipe.about),
        "cite": "\n\n".join(entry.bibtex for entry in cite_benchmark(manifest).entries),
        "load": _loading(path, manifest, rooted),
        "command": f"wordnet-splits build {path}{roots}",
    }


def _about(about: About) -> dict[str, Any]:
    """Return the author's description of a benchmark, with the full name of each author."""
    authors = [
        {"name": author.full_name, "orcid": author.orcid, "affiliation": author.affiliation}
        for author in about.authors
    ]
    licence = {"licence_url": licence_address(about.licence)} if about.licence else {}
    return {**about.as_dict(), "authors": authors, **licence}


def _rule_sentence(group: Group, noun: str) -> str:
    words = rule_words(group.classes, group.source, noun)
    return f"{words[0].upper()}{words[1:]}."


def _loading(path: str, manifest: Manifest, rooted: Sequence[str]) -> str:
    """Return three lines of Python that load a benchmark; empty where no image is known."""
    splits = [split for split, _ in manifest.parts]
    if not splits:
        return ""
    split = "test" if "test" in splits else splits[0]
    folders = ", ".join(f'"{name}": "DIR"' for name in rooted)
    roots = f", roots={{{folders}}}" if rooted else ""
    return f"""from wordnet_splits.torch import UnknownDetectionSet
{split} = UnknownDetectionSet("{path}", split="{split}"{roots})
image, label = {split}[0]  # the label is -1 for images that are not in-distribution"""


def benchmark_page(
    manifest: Manifest, synsets: SynsetNumbers, samples: Samples, *, read: bool = False
) -> dict[str, Any]:
    """Return the class table, the class tree and the sample images of a benchmark.

    ``read`` : whether to judge the roles by other readings of the rules, which takes up to ten seconds.
    """
    synsets = synsets.within(taxonomy_of(manifest))
    rows = manifest.classes.to_pylist()
    table = to_columns((*CLASS, *MEASURES), rows)
    sentences = _rule_sentences(manifest, rows)
    rules = list(dict.fromkeys(sentences))
    table["rule"] = [rules.index(sentence) for sentence in sentences]
    table["role"] = [ROLES.index(row["role"]) for row in rows]
    table["synset"] = [synsets.number(row["own_wnid"]) for row in rows]
    table["lcs"] = [synsets.number(row["lcs"]) for row in rows]
    table["nearest"] = _nearest_rows(rows)
    paths = [_path_to_nearest(row, synsets) for row in rows]
    table["way"] = [path for path, _ in paths]
    table["lcs_at"] = [lcs_position for _, lcs_position in paths]
    return {
        "name": manifest.name,
        "rules": rules,
        "classes": table,
        "tree": class_tree([row["own_wnid"] for row in rows], synsets),
        "readings": _readings(manifest, rows) if read else None,
        "images": [samples.files.get((row["source"], row["class_id"]), []) for row in rows],
        "credits": samples.credits,
        "withheld": samples.withheld,
    }


def _rule_sentences(manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each class's rule in words; a class outside all sets gets every rule that could take it."""
    recipe = load_recipe(manifest)
    noun = taxonomy_of(manifest).noun
    by_group = {group.name: _rule_sentence(group, noun) for group in recipe.group}
    by_source: dict[str, list[str]] = {}
    for group in recipe.group:
        by_source.setdefault(group.source, []).append(by_group[group.name])
    return [by_group.get(row["group"]) or " ".join(by_source.get(row["source"], ())) for row in rows]


def _readings(manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the meaning of each reading, and each class's role before draws and under these readings.

    A class to which none applies has a reason in place of roles; ``absent`` is the reason for all classes.
    """
    try:
        readings = quick_roles(load_recipe(manifest))
    except SplitsError as error:
        return {"absent": f"not computed: {error}"}
    if readings is None:
        return {"absent": f"not computed: the OOD sources have more than {MOST_READ:,} classes"}
    judged = {(item.source, item.class_id): item for item in readings.classes}
    items = [judged[row["source"], row["class_id"]] for row in rows]
    names = [name for name in readings.names if any(item.readings[name] for item in items)]
    return {
        "meanings": [BUILT_IN[name] for name in names],
        "role": [item.candidate for item in items],
        "roles": [[item.readings[name] for name in names] for item in items],
        "why": [item.why for item in items],
    }


def _nearest_rows(rows: list[dict[str, Any]]) -> list[int | None]:
    """Return the row of each class's nearest ID class, by class_id and, if that is ambiguous, by synset."""
    id_rows: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if row["role"] == "id":
            id_rows.setdefault(row["class_id"], []).append(number)
    nearest_rows: list[int | None] = []
    for row in rows:
        same_id = id_rows.get(row["nearest_id"], [])
        same_synset = [n for n in same_id if row["nearest_wnid"] in rows[n]["wnids"]]
        nearest_rows.append(next(iter(same_synset or same_id), None))
    return nearest_rows


def _path_to_nearest(row: dict[str, Any], synsets: SynsetNumbers) -> tuple[list[int] | None, int | None]:
    """Return the synsets up to the least common subsumer and down, and the position of the subsumer."""
    wnid, nearest = row["own_wnid"], row["nearest_wnid"]
    if wnid is None or nearest is None:
        return None, None
    up, lcs, down = similarity.path_between(wnid, nearest, synsets.taxonomy)
    climb = list(dict.fromkeys((*up, lcs)))
    descent = list(dict.fromkeys((lcs, *reversed(down))))[1:]
    return synsets.numbers([*climb, *descent]), len(climb) - 1


def search_page(manifests: list[Manifest], synsets: SynsetNumbers) -> dict[str, Any]:
    """Return every class of every source once for each hierarchy, with the benchmarks that have it."""
    sources: dict[str, int] = {}
    classes: dict[tuple[Taxonomy, str, str], dict[str, Any]] = {}
    for index, manifest in enumerate(manifests):
        taxonomy = taxonomy_of(manifest)
        for number, row in enumerate(manifest.classes.to_pylist()):
            source, class_id = row["source"], row["class_id"]
            key = taxonomy, source, class_id
            if key not in classes:
                classes[key] = {
                    "source_at": sources.setdefault(source, len(sources)),
                    "class_id": class_id,
                    "name": row["name"],
                    "synset": synsets.within(taxonomy).number(row["own_wnid"]),
                    "in": [],
                }
            classes[key]["in"].append([index, number, ROLES.index(row["role"])])
    table = to_columns(("source_at", "class_id", "name", "synset", "in"), classes.values())
    return {"benchmark": [manifest.name for manifest in manifests], "source": list(sources), **table}
