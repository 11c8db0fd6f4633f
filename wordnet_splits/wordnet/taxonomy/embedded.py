"""The WordNet in the package, as ``tools.facts.wordnet`` writes it: arrays that load quickly, and the text.

``nouns.npz``
    graph and words as uncompressed arrays; loading reads nothing else.
``data.noun.xz``, ``noun.exc.xz``
    two of the database's own files, read for glosses, sense keys and irregular plurals; the third,
    ``index.noun``, is in ``tools``, for everything that it says is in the arrays.
"""

from __future__ import annotations

import lzma
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.wordnet.taxonomy import wndb
from wordnet_splits.wordnet.taxonomy.graph import Graph, PartGraph
from wordnet_splits.wordnet.taxonomy.lexicon import Lexicon

SHA256 = {
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
}
"""SHA-256 of the unpacked files, as in Debian's wordnet-base 1:3.0-37."""

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


def unpack(arrays: Mapping[str, np.ndarray]) -> wndb.Nouns:
    """Return the nouns in the arrays of ``nouns.npz``."""
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
