"""Responsible-AI fields of Croissant metadata: facts of a manifest, and its authors' words in ``[about]``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Group, load_recipe
from wordnet_splits.datasets.sources import source_class, source_info
from wordnet_splits.datasets.sources.built_in import NoiseSource
from wordnet_splits.hub.attribution import HOME, about_of

VENUE_FIELDS: Final = {
    "rai:dataLimitations": "limitations",
    "rai:dataBiases": "biases",
    "rai:personalSensitiveInformation": "personal_information",
    "rai:dataUseCases": "use_cases",
    "rai:dataSocialImpact": "social_impact",
    "rai:hasSyntheticData": "synthetic_data",
    "prov:wasDerivedFrom": None,
    "prov:wasGeneratedBy": None,
}
"""Fields that NeurIPS 2026's evaluations and datasets track requires -> their key in ``[about]``, if any.

The names are those of Croissant RAI 1.0 and of W3C PROV-O; RAI 1.0 does not define ``hasSyntheticData``.
Source: https://neurips.cc/Conferences/2026/EvaluationsDatasetsHosting
"""

TASKS: Final = {
    "near": "detection of near-OOD images ({})",
    "far": "detection of far-OOD images ({})",
    "csid": "recognition of ID classes in covariate-shifted images ({})",
}
"""Role -> the evaluation that its test groups are for."""

DOI: Final = re.compile(r"\bdoi\s*=\s*[{\"](10\.[^}\"]+)")


def responsible_ai_of(manifest: Manifest) -> dict[str, Any]:
    """Return the fields of `VENUE_FIELDS` that are known; an unknown field has no key.

    Limitations, use cases, synthetic data and provenance come from the manifest. ``[about]`` adds the
    authors' words, unchanged; those of the benchmark's own datasets on limitations, biases and personal
    information follow.

    Raises
    ------
    ManifestError : ``synthetic_data`` is false, and a group or a dataset has synthetic images.
    """
    fields = {
        "rai:dataLimitations": [*_limitations(manifest), *_words(manifest, "limitations")],
        "rai:dataBiases": _words(manifest, "biases"),
        "rai:personalSensitiveInformation": _words(manifest, "personal_information"),
        "rai:dataUseCases": [*_tasks(manifest), *filter(None, [about_of(manifest).use_cases])],
        "rai:dataSocialImpact": about_of(manifest).social_impact,
        "rai:hasSyntheticData": _is_synthetic(manifest),
        "prov:wasDerivedFrom": list(_origins(manifest)),
        "prov:wasGeneratedBy": list(_activities(manifest)),
    }
    return {key: value for key, value in fields.items() if value not in (None, [])}


def check_fields(manifest: Manifest) -> list[dict[str, Any]]:
    """Return a row for each of `VENUE_FIELDS`: ``field``, ``present``, ``about`` (its key, or None)."""
    known = responsible_ai_of(manifest)
    return [{"field": key, "present": key in known, "about": about} for key, about in VENUE_FIELDS.items()]


def _words(manifest: Manifest, key: str) -> list[str]:
    """Return the authors' words under a key: the benchmark's, then those of its own datasets, by name."""
    datasets = [manifest.declarations[name].about for name in sorted(manifest.declarations)]
    words = [getattr(about, key) for about in (about_of(manifest), *datasets)]
    return list(dict.fromkeys(filter(None, words)))


def _limitations(manifest: Manifest) -> Iterator[str]:
    data, recipe = manifest.data, load_recipe(manifest)
    hierarchy = f"{data.taxonomy.name} {data.taxonomy.version}"
    if manifest.own_hierarchy is not None:
        hierarchy = f"the hierarchy {taxonomy_of(manifest).title}"
    yield f"Relations between classes are those of {hierarchy}; they do not measure how similar images look."
    if data.fingerprints.pixels_in_all is None:
        yield "A digest is null where the pixels were not at hand when the table was frozen."
    lines = []
    for row in manifest.groups:
        lines += [f"{row.group}: {text}" for text in (row.note, row.reason) if text]
        if row.awaits and not row.reason:
            lines.append(f"{row.group}: the ids of its {row.split} images are not known ({row.status})")
        elif row.status.startswith("missing"):
            lines.append(f"{row.group}: {row.status.removeprefix('missing ')} {row.split} images are missing")
        if row.population is not None:
            lines.append(
                f"{row.group}: its {row.split} images were drawn from {row.population:,} in one local copy"
            )
    yield from dict.fromkeys(lines)
    generated = {group.name for group in _noise_groups(manifest)}
    columns = (manifest.classes[name].to_pylist() for name in ("group", "wnids"))
    unplaced = Counter(group for group, wnids in zip(*columns, strict=True) if group and not wnids)
    for group in sorted(unplaced.keys() - generated):
        yield f"{group}: {counted(unplaced[group], 'class')} without a place in {hierarchy}"
    if recipe.near_duplicates is None:
        yield "Near-duplicate images were not compared when it was built, only identical ones."
    yield from (f"Known leak, {leak.sentence}" for leak in data.leaks)


def _tasks(manifest: Manifest) -> Iterator[str]:
    """Yield the evaluation that the roles of the test groups define."""
    tested: dict[str, list[str]] = {}
    for row in manifest.groups:
        if row.split == "test":
            tested.setdefault(row.role, []).append(row.group)
    tasks = [text.format(", ".join(tested[role])) for role, text in TASKS.items() if role in tested]
    if "id" in tested and tasks:
        known = counted(len(manifest.class_names()), "ID class")
        yield f"Evaluation of image classifiers of {known} on test images: {', '.join(tasks)}."


def _noise_groups(manifest: Manifest) -> list[Group]:
    groups, datasets = load_recipe(manifest).group, manifest.datasets
    return [group for group in groups if issubclass(source_class(group.source, datasets), NoiseSource)]


def _is_synthetic(manifest: Manifest) -> bool | None:
    """Return whether some images are synthetic; None if the authors of a custom dataset do not say."""
    said = about_of(manifest).synthetic_data
    used = manifest.declarations.keys() & set(load_recipe(manifest).sources)
    datasets = {name: manifest.declarations[name].about.synthetic_data for name in sorted(used)}
    synthetic = [group.name for group in _noise_groups(manifest)]
    synthetic += [name for name, value in datasets.items() if value]
    if synthetic and said is False:
        raise ManifestError(
            f"synthetic_data must be true, as images of {', '.join(synthetic)} are synthetic",
            where="[about]",
            hint="write synthetic_data = true, or remove it",
        )
    if synthetic:
        return True
    return None if said is None and None in datasets.values() else bool(said)


def _origins(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the datasets behind a benchmark, as entities with their address, licence and DOI."""
    datasets = manifest.datasets
    for name in load_recipe(manifest).sources_named:
        if issubclass(source_class(name, datasets), NoiseSource):
            continue
        info = source_info(name, datasets)
        doi = DOI.search(info.bibtex)
        facts = {
            "prov:atLocation": info.url,
            "sc:license": info.licence,
            "sc:citation": doi and f"https://doi.org/{doi[1]}",
        }
        yield {
            "@id": f"urn:dataset:{info.name}",
            "@type": "prov:Entity",
            "prov:label": info.title,
            **{key: value for key, value in facts.items() if value},
        }


def _activities(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the choice by the recipe, and the generation of each group of noise; none has a time."""
    program = f"wordnet-splits {manifest.data.provenance.get('wordnet-splits', '')}".strip()
    recipe = f"recipe of {manifest.name}, version {manifest.version}, seed {manifest.data.seed}"
    fingerprint = f", fingerprint {manifest.fingerprint}" if manifest.fingerprint else ""
    agent = {
        "@type": ["prov:Agent", "prov:SoftwareAgent"],
        "prov:label": program,
        "prov:atLocation": HOME,
    }
    yield {
        "@type": "prov:Activity",
        "prov:label": "Classes and images chosen by the rules of a recipe",
        "prov:used": {"@type": ["prov:Entity", "prov:Plan"], "prov:label": recipe + fingerprint},
        "prov:wasAssociatedWith": agent,
    }
    for group in _noise_groups(manifest):
        yield {
            "@type": "prov:Activity",
            "prov:label": f"Images of {group.name} computed by the generator {group.source}, "
            f"seed {group.noise.seed if group.noise else 0}",
            "prov:wasAssociatedWith": agent,
        }
