"""The WordNet that ships in the package: two archives, one quick to load, one with the full text.

``nouns.npz``
    graph and words as uncompressed arrays; all that loading reads.
``data.noun.xz``, ``index.noun.xz``, ``noun.exc.xz``
    the database's own files; read for glosses and for export only.

``python -m wordnet_splits.taxonomy.shipped WNDB_DIR`` writes both from a directory of WordNet 3.0.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.taxonomy import wndb
from wordnet_splits.taxonomy.graph import Graph
from wordnet_splits.taxonomy.lexicon import Lexicon
from wordnet_splits.taxonomy.parts import PartGraph

SHA256 = {
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "index.noun": "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
    "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
}
"""Of the unpacked files, as Debian's wordnet-base 1:3.0-37 ships them."""

ARRAYS = "nouns.npz"
TEXTS = ("version", "lemma_text", "index_text", "exceptions_text")


def folder() -> Traversable:
    """Return the folder of the shipped WordNet."""
    return files("wordnet_splits") / "data" / "wordnet"


class ShippedTexts(Mapping[str, bytes]):
    """The shipped WNDB files by name, unpacked on first use (0.2 s for all)."""

    def __init__(self) -> None:
        self._unpacked: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in SHA256:
            raise KeyError(name)
        if name not in self._unpacked:
            self._unpacked[name] = lzma.decompress((folder() / f"{name}.xz").read_bytes())
        return self._unpacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SHA256)

    def __len__(self) -> int:
        return len(SHA256)

    def __getstate__(self) -> dict[str, object]:
        return {"_unpacked": {}}


def load() -> wndb.Nouns:
    """Return the shipped nouns."""
    try:
        with (folder() / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return unpack({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            "the shipped WordNet cannot be read", where=ARRAYS, hint="reinstall the package"
        ) from error


def pack(nouns: wndb.Nouns) -> dict[str, np.ndarray]:
    """Return ``nouns`` as named arrays without objects; texts are their UTF-8 bytes."""
    words = nouns.lexicon
    return {
        "version": _text(nouns.version),
        "offset_gaps": np.diff(nouns.offsets, prepend=np.uint32(0)).astype(np.uint16),  # half the size
        "parent_counts": np.diff(nouns.graph.parent_indptr).astype(np.uint8),
        "parents": nouns.graph.parent_indices,
        "instance": nouns.graph.instance,
        "lemma_counts": words.lemma_counts,
        "lemma_text": _text(words.lemma_text),
        "index_text": _text(words.index_text),
        "index_counts": words.index_counts,
        "index_nodes": words.index_nodes,
        "exceptions_text": _text(words.exceptions_text),
        "part_nodes": nouns.parts.parts,
        "whole_nodes": nouns.parts.wholes,
        "part_kinds": nouns.parts.kinds,
    }


def unpack(arrays: Mapping[str, np.ndarray]) -> wndb.Nouns:
    """Return the nouns that ``pack`` made into ``arrays``."""
    offsets = np.cumsum(arrays["offset_gaps"], dtype=np.uint32)
    indptr = np.zeros(len(offsets) + 1, np.int32)
    np.cumsum(arrays["parent_counts"], out=indptr[1:])
    text = {name: arrays[name].tobytes().decode("utf-8") for name in TEXTS}
    return wndb.Nouns(
        version=text["version"],
        offsets=offsets,
        graph=Graph(indptr, arrays["parents"], arrays["instance"]),
        lexicon=Lexicon(
            lemma_counts=arrays["lemma_counts"],
            lemma_text=text["lemma_text"],
            index_text=text["index_text"],
            index_counts=arrays["index_counts"],
            index_nodes=arrays["index_nodes"],
            exceptions_text=text["exceptions_text"],
        ),
        parts=PartGraph(arrays["part_nodes"], arrays["whole_nodes"], arrays["part_kinds"]),
    )


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8"), np.uint8)


def build(directory: Path) -> dict[str, bytes]:
    """Return the shipped files by name, made from a directory that holds WordNet 3.0.

    Raises
    ------
    TaxonomyError : a file is missing or is not the one of WordNet 3.0 that Debian ships.
    """
    texts = {}
    for name, expected in SHA256.items():
        texts[name] = (directory / name).read_bytes()
        found = hashlib.sha256(texts[name]).hexdigest()
        if found != expected:
            raise TaxonomyError(f"has SHA-256 {found}, not {expected}", where=str(directory / name))
    archive = io.BytesIO()
    arrays: dict[str, Any] = dict(pack(wndb.read(texts, str(directory))))
    np.savez(archive, **arrays)  # numpy 1 would take allow_pickle for one of them
    packed = {ARRAYS: archive.getvalue()}
    for name, text in texts.items():
        packed[f"{name}.xz"] = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
    return packed


def main(arguments: list[str]) -> None:
    """Write the shipped files into the package that runs."""
    target = Path(str(folder()))
    for name, content in build(Path(arguments[0])).items():
        (target / name).write_bytes(content)
        print(f"{len(content):>10,} {hashlib.sha256(content).hexdigest()} {target / name}")


if __name__ == "__main__":
    main(sys.argv[1:])
