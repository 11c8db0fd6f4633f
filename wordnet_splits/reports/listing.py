"""What benchmarks there are, and how far each is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.catalog.inventory import list_names
from wordnet_splits.manifest import load_manifest, manifest_names
from wordnet_splits.recipe import Recipe, load_recipe, recipe_names
from wordnet_splits.rules import lists_used


def awaited_lists(recipe: Recipe) -> tuple[str, ...]:
    """Return the lists a recipe names that are not shipped, sorted."""
    used = {r.list_ for g in recipe.group for r in g.images.values() if r.list_ is not None}
    used |= {name for g in recipe.group for name in lists_used(g.classes)}
    return tuple(sorted(used - set(list_names())))


def buildable() -> tuple[str, ...]:
    """Return the shipped benchmarks that ``--all`` builds: those whose lists are all at hand."""
    return tuple(n for n in recipe_names() if not awaited_lists(load_recipe(n)))


def list_all(manifests: Path | None = None) -> list[dict[str, Any]]:
    """Return every shipped or frozen benchmark with its groups, as ``list --json`` prints them."""
    frozen = manifest_names(manifests)
    return [
        _frozen(name, manifests) if name in frozen else _unfrozen(load_recipe(name))
        for name in sorted({*recipe_names(), *frozen})
    ]


def _frozen(name: str, manifests: Path | None) -> dict[str, Any]:
    data = load_manifest(name, manifests).data
    recipe = data["recipe"]
    return {
        "name": data["name"],
        "version": data["version"],
        "title": recipe.get("title", ""),
        "paper": recipe.get("paper", ""),
        "groups": data["groups"],
        "fingerprint": data["fingerprint"],
    }


def _unfrozen(recipe: Recipe) -> dict[str, Any]:
    status = "awaiting list" if awaited_lists(recipe) else "not frozen"
    groups = [
        {
            "group": group.name,
            "role": group.role,
            "source": group.source,
            "view": group.view,
            "split": split,
            "published": group.published.get(split),
            "expected": None,
            "actual": None,
            "status": status,
            "note": group.note,
        }
        for group in recipe.group
        for split in ("classes", *(s for s in ("train", "val", "test") if s in group.images))
    ]
    return {
        "name": recipe.name,
        "version": recipe.version,
        "title": recipe.title,
        "paper": recipe.paper,
        "groups": groups,
        "fingerprint": None,
    }
