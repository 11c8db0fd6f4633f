"""Sample images of the classes of a benchmark, where the licence of their source allows them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from wordnet_splits.base.about import Author
from wordnet_splits.base.digests import order_images
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.benchmark.images.raw_images import RawImages, open_sources, png
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.sources import Source, SourceInfo, source_info
from wordnet_splits.datasets.sources.roots import Roots

FOLDER: Final = "images"
THUMBNAIL: Final = "fix-64"
"""The resize spec of the thumbnails."""
IMAGES_PER_CLASS: Final = 4
GENERATED: Final = "none needed"
"""How the licence of a generated source begins."""
REDISTRIBUTABLE: Final = frozenset(
    f"cc-by{kind}-{number}" for kind in ("", "-sa") for number in ("2.0", "2.5", "3.0", "4.0")
) | {
    *("cc0", "cc0-1.0", "pddl-1.0", "odc-by-1.0", "odbl-1.0", "cdla-permissive-1.0", "cdla-permissive-2.0"),
    *("mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "unlicense"),
}
"""Licences that permit showing resized images, in lower case."""

ClassKey = tuple[str, str]
"""(source, class_id)."""


@dataclass(frozen=True)
class Samples:
    """Sample images of a benchmark: files below the site by class, a credit for each source that is shown.

    ``withheld`` has a sentence for each source that is not shown.
    """

    files: dict[ClassKey, list[str]] = field(default_factory=dict)
    credits: list[dict[str, str]] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)


def check_roots(roots: Roots | None, manifests: Sequence[Manifest]) -> None:
    """Raise SplitsError for a root of a source that no benchmark of the site has."""
    sources = {row.source for manifest in manifests for row in manifest.groups}
    for name in sorted(set(roots or {}) - sources):
        raise SplitsError(
            f"no benchmark of this site has images of {name}",
            where="--root",
            hint=f"their sources are {', '.join(sorted(sources))}",
        )


def write_samples(manifest: Manifest, site: Path, roots: Roots | None, per_class: int) -> Samples:
    """Write thumbnails of some images of each class into the folder of a site, where licences allow it.

    The images are the first in the order of a draw by their ids, so they do not depend on the copy. The
    environment and ``roots.toml`` may add roots.
    """
    samples = Samples()
    sources = sorted({manifest.source_of(group) for _, group in manifest.parts})
    for name in sorted({row.source for row in manifest.groups}.difference(sources)):
        samples.withheld.append(f"No images of {name} are shown: its image ids are not known yet.")
    relevant = {name: root for name, root in (roots or {}).items() if name in sources}
    infos = {name: source_info(name, manifest.datasets) for name in sources}
    authors = manifest.data.about.authors
    shown = {
        name for name, info in infos.items() if _may_show(info, manifest.declarations.get(name), authors)
    }
    opened = open_sources(sorted(shown | set(relevant)), relevant, manifest.declarations)
    for name, info in infos.items():
        if name not in shown:
            terms = (
                f"its licence ({info.licence}) does not allow it" if info.licence else "it states no licence"
            )
            samples.withheld.append(f"No images of {name} are shown: {terms}.")
        elif name not in opened:
            samples.withheld.append(f"No images of {name} are shown: its files were not at hand.")
        else:
            samples.files.update(_write_source(manifest, opened[name], site, per_class))
            samples.credits.append(_credit(info, manifest.declarations.get(name)))
    return samples


def _may_show(info: SourceInfo, declaration: Declaration | None, authors: Sequence[Author]) -> bool:
    """Return whether images may be shown: by the licence, or because the dataset is the author's own.

    A declared dataset is the author's own if it shares an author with the benchmark, or if it has no licence
    and no authors and is not a dataset on the Hub.
    """
    if declaration is not None:
        if set(declaration.about.authors) & set(authors):
            return True
        if not info.licence:
            return declaration.layout != "hub" and not declaration.about.authors
    licence = info.licence.partition(" (")[0].lower().replace(" ", "-")
    return licence in REDISTRIBUTABLE or info.licence.startswith(GENERATED)


def _credit(info: SourceInfo, declaration: Declaration | None) -> dict[str, str]:
    """Return the caption of a source's images."""
    authors = declaration.about.authors if declaration is not None else ()
    return {
        "source": info.name,
        "title": info.title,
        "authors": "; ".join(author.full_name for author in authors),
        "licence": info.licence or "no licence stated",
        "url": info.url,
    }


def _write_source(
    manifest: Manifest, source: Source, site: Path, per_class: int
) -> Mapping[ClassKey, list[str]]:
    """Write the thumbnails of a source and return their files by class."""
    digest_of: dict[str, dict[str, Any]] = {}
    for part in manifest.parts:
        if manifest.source_of(part[1]) == source.name:
            table = manifest.images(*part).select(["class_id", "image_id", "digest"])
            columns = (table[name].to_pylist() for name in table.column_names)
            for class_id, image_id, digest in zip(*columns, strict=True):
                digest_of.setdefault(class_id, {})[image_id] = digest
    folder = site / FOLDER / source.name
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[ClassKey, list[str]] = {}
    for class_id, digests in digest_of.items():
        ids = order_images("site", 0, source.name, class_id, digests)[:per_class]
        known = pa.array([digests[image_id] for image_id in ids], pa.binary())
        images = RawImages(source, pa.array(ids, pa.string()), known, THUMBNAIL)
        names = []
        for image in images.pictures(np.arange(len(ids))):
            content = png(image)
            name = f"{hashlib.sha256(content).hexdigest()[:16]}.png"
            (folder / name).write_bytes(content)
            names.append(f"{FOLDER}/{source.name}/{name}")
        files[source.name, class_id] = list(dict.fromkeys(names))
    return files
