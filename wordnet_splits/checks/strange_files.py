"""Files in a manifest's folder that are not the manifest's, or that describe other files than it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import ManifestError, SplitsError
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.manifest import companions, manifest_files

CROISSANT: Final = "croissant.json"


def strange_files(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield kind and sentence of each problem: another name than the manifest has, files that are not its."""
    folder = manifest.folder
    assert folder is not None
    if folder.resolve().name != manifest.name:
        yield "name", f"the folder {folder.name} holds the manifest of {manifest.name}"
    own_files = [
        *manifest_files(manifest.data),
        *(path.relative_to(folder).as_posix() for path in companions(folder)),
    ]
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if relative not in own_files and not (
            path.is_dir() and any(k.startswith(f"{relative}/") for k in own_files)
        ):
            yield "stray-file", f"{relative} belongs to no manifest"
    yield from _stale_metadata(folder, manifest_files(manifest.data))


def _stale_metadata(folder: Path, own_files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a problem where ``croissant.json`` is of other files than those beside it."""
    path = folder / CROISSANT
    if not path.is_file():
        return
    try:
        described = read_json(path, error=ManifestError)
        sums = {item.get("contentUrl"): item.get("sha256") for item in described["distribution"]}
        digests = {
            name: sha256_of(folder / name, largest=LARGEST_TABLE) for name in own_files if name in sums
        }
    except (SplitsError, AttributeError, KeyError, TypeError):
        yield "stale-file", f"{CROISSANT} cannot be read: `wordnet-splits hub croissant` writes it"
        return
    for name in sorted(digests):
        if sums[name] != digests[name]:
            again = "`wordnet-splits hub croissant` writes it again"
            yield "stale-file", f"{CROISSANT} describes another {name}: {again}"
