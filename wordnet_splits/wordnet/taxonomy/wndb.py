"""Nouns and their glosses: WordNet's own text files (WNDB, see wndb(5WN)), and the WordNet in the package.

The package has what ``tools.facts.wordnet`` writes: arrays that load quickly, and the text.

``nouns.npz``
    graph and words as uncompressed arrays; loading reads only this file.
``data.noun.xz``, ``noun.exc.xz``
    two of the database's own files, read for glosses, sense keys and irregular plurals; the third,
    ``index.noun``, is in ``tools``, because the arrays contain all its information.
"""

from __future__ import annotations

import itertools
import lzma
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.base.lazy import need
from wordnet_splits.wordnet.taxonomy import graph, lexicon
from wordnet_splits.wordnet.taxonomy.graph import Graph, PartGraph
from wordnet_splits.wordnet.taxonomy.lexicon import Lexicon

if TYPE_CHECKING:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

FILES = ("data.noun", "index.noun", "noun.exc")
"""Files of a directory: synsets, lemmas in sense order, irregular plurals."""
LARGEST = 64 << 20
"""Largest size of a file in bytes (data.noun has 15 MB)."""

HYPERNYM, INSTANCE_HYPERNYM = "@", "@i"
QUOTED = re.compile(r'"([^"]*)"')
"""An example in a gloss."""


@dataclass(frozen=True, eq=False)
class Nouns:
    """The nouns of a WordNet: node i is the synset at byte ``offsets[i]`` of ``data.noun``."""

    version: str
    offsets: npt.NDArray[np.uint32]
    graph: Graph
    lexicon: lexicon.Lexicon
    parts: PartGraph


def directory_texts(folder: Path, without: Collection[str] = ()) -> dict[str, bytes]:
    """Return the content of the noun files of a WNDB directory, except for those in ``without``.

    Raises TaxonomyError if one of ``FILES`` cannot be read.
    """
    # loading the embedded database avoids pydantic and Parquet, which would double its time
    from wordnet_splits.base.untrusted import read_bytes

    try:
        return {
            name: read_bytes(folder / name, largest=LARGEST, error=TaxonomyError)
            for name in FILES
            if name not in without
        }
    except TaxonomyError as error:
        hint = f"a WNDB directory holds {', '.join(FILES)}"
        raise TaxonomyError(error.what, where=error.where, hint=hint) from error


def nltk_texts(reader: WordNetCorpusReader | None) -> dict[str, bytes]:
    """Return the content of the noun files of an NLTK reader, by default of the installed corpus.

    Raises MissingPackageError without NLTK, TaxonomyError without its corpus.
    """
    corpus = need("nltk", "nltk", where="Taxonomy.from_nltk").corpus.wordnet if reader is None else reader
    texts = {}
    for name in FILES:
        try:
            with corpus.open(name) as file:
                texts[name] = file.read().encode("utf-8")
        except LookupError as error:
            raise TaxonomyError(
                "NLTK has no WordNet corpus",
                where="nltk",
                hint="python -m nltk.downloader wordnet, or use the embedded one",
            ) from error
    return texts


def wnids(offsets: npt.NDArray[np.uint32]) -> tuple[str, ...]:
    """Return ``n`` and the 8 digits of each offset."""
    letters = np.full((len(offsets), 9), ord("n"), np.uint8)
    remainder = offsets.astype(np.uint32)
    for column in range(8, 0, -1):  # digit by digit for all at once: 82,115 formatted strings take 60 ms
        remainder, letters[:, column] = remainder // 10, remainder % 10 + ord("0")
    text = letters.tobytes().decode("ascii")
    return tuple([text[at : at + 9] for at in range(0, len(text), 9)])


def read(texts: Mapping[str, bytes], where: str) -> Nouns:
    """Return the nouns of ``texts``: name -> content of each of ``FILES``; ``where`` is their location.

    Raises
    ------
    TaxonomyError : a line does not follow the format, or points to a synset that does not exist; the error
        names the file and the line.
    """
    for name in ("data.noun", "index.noun"):
        if texts[name] and not texts[name].endswith(b"\n"):
            raise TaxonomyError(
                "ends in the middle of a line", where=f"{where}/{name}", hint="is it cut short?"
            )
    version = re.search(rb"WordNet (\S+) Copyright", texts["data.noun"][:4096])
    offsets: list[int] = []
    lemmas: list[list[str]] = []
    pointers: list[list[tuple[int, bool]]] = []
    wholes: list[list[tuple[int, int]]] = []
    for line, number in records(texts["data.noun"]):
        try:
            offset, words, above, around = _synset(line)
        except (ValueError, IndexError) as error:
            raise _malformed(where, "data.noun", number) from error
        offsets.append(offset)
        lemmas.append(words)
        pointers.append(above)
        wholes.append(around)
    if not offsets:
        raise TaxonomyError("holds no synsets", where=f"{where}/data.noun")
    if any(after <= before for before, after in itertools.pairwise(offsets)):
        raise TaxonomyError("synsets are not in the order of their offsets", where=f"{where}/data.noun")
    node_of = {offset: node for node, offset in enumerate(offsets)}
    senses = _senses(texts["index.noun"], node_of, where)
    for node, words in enumerate(lemmas):
        if node not in senses.get(words[0].lower(), ()):
            raise TaxonomyError(
                f"{words[0]!r} lacks the sense {offsets[node]:08d} of data.noun", where=f"{where}/index.noun"
            )
    exceptions = texts["noun.exc"].decode("utf-8", "replace")
    return Nouns(
        version=version.group(1).decode("ascii", "replace") if version else "unknown",
        offsets=np.array(offsets, np.uint32),
        graph=_graph(offsets, pointers, node_of, where),
        lexicon=lexicon.from_index(lemmas, senses, exceptions),
        parts=_parts(offsets, wholes, node_of, where),
    )


def records(text: bytes) -> Iterator[tuple[str, int]]:
    """Yield the lines of a WNDB file with their numbers, without the licence on top."""
    for number, line in enumerate(text.decode("utf-8", "replace").split("\n"), start=1):
        if line and not line.startswith(" "):
            yield line, number


def _synset(line: str) -> tuple[int, list[str], list[tuple[int, bool]], list[tuple[int, int]]]:
    """Parse a line of ``data.noun``.

    Returns
    -------
    The synset's offset, lemmas, hypernym pointers (offset, is instance) and holonym pointers (offset, kind).
    """
    fields = line.partition("|")[0].split()
    offset = fields[0]
    if (
        len(offset) != 8
        or not (offset.isascii() and offset.isdigit())
        or fields[2] != "n"
        or len(fields[3]) != 2
    ):
        raise ValueError("not a noun synset")
    after_words = 4 + 2 * int(fields[3], 16)
    words = fields[4:after_words:2]
    stop = after_words + 1 + 4 * int(fields[after_words])
    if not words or len(fields) < stop:
        raise ValueError("fields are missing")
    above = [
        (int(fields[at + 1]), fields[at] == INSTANCE_HYPERNYM)
        for at in range(after_words + 1, stop, 4)
        if fields[at] == HYPERNYM or fields[at] == INSTANCE_HYPERNYM
    ]
    around = [
        (int(fields[at + 1]), graph.SYMBOLS[fields[at]])
        for at in range(after_words + 1, stop, 4)
        if fields[at] in graph.SYMBOLS and fields[at + 2] == "n"
    ]
    return int(offset), words, above, around


def gloss(text: bytes, offset: int) -> str:
    """Return definition and examples of the synset ``offset`` of ``data.noun``."""
    start, head = offset, b"%08d " % offset
    if not text.startswith(head, start):  # another line ending than the publisher's moves every line
        start = text.index(b"\n" + head) + 1
    return text[start : text.index(b"\n", start)].decode("utf-8", "replace").partition("|")[2].strip()


@dataclass(frozen=True)
class Glosses:
    """The glosses of the synsets at ``offsets`` of the ``data.noun`` in ``texts``."""

    texts: Mapping[str, bytes]
    offsets: npt.NDArray[np.uint32]

    def __getitem__(self, node: int) -> str:
        """Return definition and examples of ``node``."""
        return gloss(self.texts["data.noun"], int(self.offsets[node]))


def split_gloss(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the definitions of a gloss, joined by semicolons as NLTK has them, and its quoted examples."""
    return QUOTED.sub("", text).strip("; "), tuple(QUOTED.findall(text))


def first_definition(definition: str) -> str:
    """Return a definition up to its first semicolon outside parentheses: ``(`;')`` is the sign itself.

    Without the colon or comma that led to an example.
    """
    depth, end = 0, len(definition)
    for at, letter in enumerate(definition):
        depth += (letter == "(") - (letter == ")")
        if letter == ";" and depth <= 0:
            end = at
            break
    return definition[:end].rstrip(" :,")


def _senses(text: bytes, node_of: Mapping[int, int], where: str) -> dict[str, list[int]]:
    """Return lemma -> nodes in sense order, from ``index.noun``."""
    senses = {}
    for line, number in records(text):
        fields = line.split()
        try:
            count = int(fields[2])
            nodes = [node_of[int(offset)] for offset in fields[len(fields) - count :]]
        except (ValueError, IndexError, KeyError) as error:
            raise _malformed(where, "index.noun", number) from error
        if not 0 < count < 256:
            raise _malformed(where, "index.noun", number)
        senses[fields[0]] = nodes
    return senses


def _graph(
    offsets: list[int], pointers: list[list[tuple[int, bool]]], node_of: Mapping[int, int], where: str
) -> Graph:
    parents = []
    for offset, above in zip(offsets, pointers, strict=True):
        try:  # plain hypernyms last: they override an instance edge to the same synset
            parents.append(
                {node_of[to]: instance for to, instance in sorted(above, key=lambda edge: not edge[1])}
            )
        except KeyError as error:
            raise TaxonomyError(
                f"synset {offset:08d} names a hypernym {error.args[0]:08d} that does not exist",
                where=f"{where}/data.noun",
            ) from error
    return graph.from_edges(parents)


def _parts(
    offsets: list[int], pointers: list[list[tuple[int, int]]], node_of: Mapping[int, int], where: str
) -> PartGraph:
    edges = []
    for node, (offset, around) in enumerate(zip(offsets, pointers, strict=True)):
        for to, kind in around:
            if to not in node_of:
                raise TaxonomyError(
                    f"synset {offset:08d} names a holonym {to:08d} that does not exist",
                    where=f"{where}/data.noun",
                )
            edges.append((node, node_of[to], kind))
    return PartGraph.from_edges(edges)


def _malformed(where: str, name: str, number: int) -> TaxonomyError:
    return TaxonomyError(
        "does not follow the WNDB format",
        where=f"{where}/{name} line {number}",
        hint="see wndb(5WN); is the file of another part of speech?",
    )


SHA256 = {
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
}
"""SHA-256 of the unpacked files, as in Debian's wordnet-base 1:3.0-37."""

ARRAYS = "nouns.npz"
TEXTS = ("version", "lemma_text", "index_text", "exceptions_text")


def shipped_folder() -> Traversable:
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
            self._unpacked[name] = lzma.decompress((shipped_folder() / f"{name}.xz").read_bytes())
        return self._unpacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SHA256)

    def __len__(self) -> int:
        return len(SHA256)

    def __getstate__(self) -> dict[str, object]:
        return {"_unpacked": {}}


def load_shipped() -> Nouns:
    """Return the shipped nouns."""
    try:
        with (shipped_folder() / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return unpack({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            "the shipped WordNet cannot be read", where=ARRAYS, hint="reinstall the package"
        ) from error


def unpack(arrays: Mapping[str, np.ndarray]) -> Nouns:
    """Return the nouns in the arrays of ``nouns.npz``."""
    offsets = np.cumsum(arrays["offset_gaps"], dtype=np.uint32)
    indptr = np.zeros(len(offsets) + 1, np.int32)
    np.cumsum(arrays["parent_counts"], out=indptr[1:])
    text = {name: arrays[name].tobytes().decode("utf-8") for name in TEXTS}
    return Nouns(
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
