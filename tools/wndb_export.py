"""Export of the shipped WordNet as a directory that NLTK's ``WordNetCorpusReader`` reads.

Format: wndb(5WN), senseidx(5WN), lexnames(5WN).
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wordnet_splits.wordnet.taxonomy.wndb import FILES, ShippedTexts, records

INDEX: Final = "index.noun"
INDEX_SHA256: Final = "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04"
"""SHA-256 of the unpacked ``index.noun``, as in Debian's wordnet-base 1:3.0-37."""
INDEX_FILE: Final = Path(__file__).with_name("index.noun.xz")

LEXNAMES: tuple[tuple[str, str], ...] = (
    ("adj", "all pert"),
    ("adv", "all"),
    (
        "noun",
        "Tops act animal artifact attribute body cognition communication event feeling food group "
        "location motive object person phenomenon plant possession process quantity relation shape state "
        "substance time",
    ),
    (
        "verb",
        "body change cognition communication competition consumption contact creation emotion motion "
        "perception possession social stative weather",
    ),
    ("adj", "ppl"),
)
"""Lexicographer files in the order of their numbers, lexnames(5WN)."""

PART_OF_SPEECH = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

EMPTY_FILES = (
    "cntlist.rev",
    *(f"{kind}.{pos}" for kind in ("data", "index") for pos in ("verb", "adj", "adv")),
    *(f"{pos}.exc" for pos in ("verb", "adj", "adv")),
)


def wndb_texts() -> dict[str, bytes]:
    """Return the three noun files of WordNet 3.0 by name: two are in the package, ``index.noun`` is here."""
    texts = {**ShippedTexts(), INDEX: lzma.decompress(INDEX_FILE.read_bytes())}
    return {name: texts[name] for name in FILES}


def export_wndb(directory: Path) -> None:
    """Write the shipped WordNet into ``directory``, which NLTK expects as ``corpora/wordnet``.

    The three noun files are restored byte for byte. ``lexnames`` is the published table, ``index.sense``
    holds the noun senses (tag count 0: the counts are not part of the noun files), and the files for verbs,
    adjectives and adverbs are empty.
    """
    texts = wndb_texts()
    contents = {"lexnames": lexnames(), "index.sense": index_sense(texts), **dict.fromkeys(EMPTY_FILES, b"")}
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in {**contents, **texts}.items():
        (directory / name).write_bytes(content)


def lexnames() -> bytes:
    """Return ``lexnames``: number, file and part of speech, one lexicographer file a line."""
    files = [(pos, name) for pos, names in LEXNAMES for name in names.split()]
    rows = (
        f"{number:02d}\t{pos}.{name}\t{PART_OF_SPEECH[pos]}\n" for number, (pos, name) in enumerate(files)
    )
    return "".join(rows).encode("ascii")


def index_sense(texts: Mapping[str, bytes]) -> bytes:
    """Return ``index.sense`` of the nouns: sense key, offset, sense number, tag count; sorted."""
    number_of: dict[tuple[str, str], int] = {}
    for line, _ in records(texts["index.noun"]):
        fields = line.split()
        for number, offset in enumerate(fields[len(fields) - int(fields[2]) :], start=1):
            number_of[fields[0], offset] = number
    rows = set()
    for line, _ in records(texts["data.noun"]):
        fields = line.partition("|")[0].split()
        for at in range(4, 4 + 2 * int(fields[3], 16), 2):
            lemma = fields[at].lower()
            key = f"{lemma}%1:{fields[1]}:{int(fields[at + 1], 16):02d}::"
            rows.add(f"{key} {fields[0]} {number_of[lemma, fields[0]]} 0\n")
    return "".join(sorted(rows)).encode("utf-8")
