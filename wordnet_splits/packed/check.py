"""Compare a packed store with its checksums, and with the manifest that it was packed from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import Problem, SplitsError
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.packed.entry import part_paths
from wordnet_splits.packed.images import PackedImages, file_sha256
from wordnet_splits.packed.reading import RAW_VIEW
from wordnet_splits.packed.store import PackedStore, open_store
from wordnet_splits.sources import source_class


def check_store(folder: Path | str, manifest: Manifest | None = None) -> list[Problem]:
    """Read every byte of a packed store; return a problem for each damaged image or file.

    Parameters
    ----------
    manifest : the benchmark of the images: its rows, ids, views and digests are compared, too.

    Raises
    ------
    SourceError : there is no packed store, or its ``packed.json`` is malformed or was altered.
    """
    store = open_store(folder)
    with using_sources({} if manifest is None else manifest.own):
        problems = [p for part in sorted(store.parts) for p in _check_part(store, part, manifest)]
    if not store.parts:
        problems.append(Problem("damaged", "", None, None, f"{store.folder} has no images"))
    if manifest is not None and store.version != manifest.version:
        detail = f"packed from version {store.version} of {store.benchmark}, not {manifest.version}"
        problems.append(Problem("damaged", "", None, None, detail))
    return problems


def _check_part(store: PackedStore, part: Part, manifest: Manifest | None) -> list[Problem]:
    entry = store.parts[part]
    bin_path, _ = part_paths(store.folder, part)
    try:
        if manifest is not None and part not in manifest.parts:
            message = f"{manifest.name} has no images of {part[1]} {part[0]}"
            raise SplitsError(message, where=str(store.folder))
        images = store.images(part) if manifest is None else store.images_of(manifest, part)
        images.check_index()
        problems = [
            Problem("damaged", entry.source, None, images.image_id(row), f"its bytes in {bin_path} differ")
            for row in images.damaged()
        ]
        if not problems and file_sha256(bin_path) != entry.sha256:
            problems.append(Problem("damaged", entry.source, None, None, f"{bin_path} has another SHA-256"))
        if not problems and manifest is not None and entry.view == RAW_VIEW:
            problems += _altered_pictures(images, manifest, part)
    except SplitsError as error:
        return [Problem("damaged", entry.source, None, None, str(error))]
    return problems


def _altered_pictures(images: PackedImages, manifest: Manifest, part: Part) -> Iterator[Problem]:
    """Yield a problem for each image whose digest is not the manifest's."""
    digests = manifest.parts[part]()["digest"].take(pa.array(images.manifest_rows))
    lossless = source_class(images.entry.source).lossless
    if not lossless and images.entry.layout == "pixels":
        return  # the digest is of the file, and only pixels of small pictures are kept
    for row, digest in enumerate(digests):
        if digest.as_py() is None:
            continue
        actual = digest_pixels(np.asarray(images.picture(row))) if lossless else digest_file(images.raw(row))
        if actual != digest.as_py():
            detail = "is not the manifest's image"
            yield Problem("altered", images.entry.source, None, images.image_id(row), detail)
