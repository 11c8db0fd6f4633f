"""Regenerate the WordNet in the package from a directory of WordNet 3.0.

``python -m tools.facts.wordnet WNDB_DIR`` rewrites ``nouns.npz`` and ``*.xz`` of
``wordnet_splits/data/wordnet``, and ``tools/index.noun.xz``.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tools.wndb_export import INDEX, INDEX_FILE, INDEX_SHA256
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import wndb
from wordnet_splits.wordnet.taxonomy.wndb import ARRAYS, SHA256, shipped_folder


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


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8"), np.uint8)


def shipped_files(directory: Path) -> dict[str, bytes]:
    """Return the stored files by name, made from a directory that holds WordNet 3.0.

    Raises
    ------
    TaxonomyError : a file is missing or differs from WordNet 3.0 as Debian ships it.
    """
    texts = {}
    for name, expected in {**SHA256, INDEX: INDEX_SHA256}.items():
        texts[name] = (directory / name).read_bytes()
        digest = hashlib.sha256(texts[name]).hexdigest()
        if digest != expected:
            raise TaxonomyError(f"has SHA-256 {digest}, not {expected}", where=str(directory / name))
    archive = io.BytesIO()
    arrays: dict[str, Any] = dict(pack(wndb.read(texts, str(directory))))
    np.savez(archive, **arrays)  # numpy 1 would read allow_pickle as an array's name
    packed = {ARRAYS: archive.getvalue()}
    for name, text in texts.items():
        packed[f"{name}.xz"] = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
    return packed


def main(arguments: list[str]) -> None:
    """Write the files into the package that runs, and ``index.noun`` into ``tools``."""
    package = Path(str(shipped_folder()))
    for name, content in shipped_files(Path(arguments[0])).items():
        path = INDEX_FILE if name == INDEX_FILE.name else package / name
        path.write_bytes(content)
        print(f"{len(content):>10,} {hashlib.sha256(content).hexdigest()} {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
