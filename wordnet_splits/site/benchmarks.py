"""What the pages say of each benchmark: counts, rules in words, known leaks, whom to cite."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.manifest import GroupRow, Manifest
from wordnet_splits.publishing.cite import cite_benchmark
from wordnet_splits.recipe import load_recipe, recipe_names
from wordnet_splits.rules.words import rule_words
from wordnet_splits.site.columns import columns
from wordnet_splits.sources import source_class

GROUP = ("group", "role", "source", "view", "split", "published", "expected", "actual", "status", "note")


def about(manifest: Manifest) -> dict[str, Any]:
    """Return the entry of a benchmark in the index."""
    recipe = load_recipe(manifest)
    with using_sources(manifest.own):
        rooted = sorted(name for name in recipe.sources if source_class(name).rooted)
    place = manifest.name if manifest.name in recipe_names() else f"FOLDER/{manifest.name}"
    roots = "".join(f" --root {name}=DIR" for name in rooted)
    return {
        "name": manifest.name,
        "version": manifest.version,
        "title": recipe.title,
        "paper": recipe.paper,
        "fingerprint": manifest.fingerprint,
        "awaiting": list(manifest.data.awaiting),
        "complete": manifest.complete,
        "groups": columns(GROUP, map(_group, manifest.groups)),
        "classes": manifest.classes.num_rows,
        "roles": dict(sorted(Counter(manifest.classes["role"].to_pylist()).items())),
        "transforms": dict(recipe.transforms),
        "rules": {group.name: rule_words(group.classes) for group in recipe.group},
        "leaks": [leak.sentence for leak in manifest.data.leaks],
        "cite": "\n\n".join(entry.bibtex for entry in cite_benchmark(manifest).entries),
        "command": f"wordnet-splits build {place}{roots}",
    }


def _group(row: GroupRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GROUP}
