"""BibTeX of papers, WordNet, datasets and this program, for a benchmark."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, ClassVar

from wordnet_splits.base.about import bibtex_entry
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.sources.info import source_info

WORDNET = "wordnet"
OWN = "wordnet-splits"


@dataclass(frozen=True)
class Entry:
    """A BibTeX entry and the reason to cite it.

    The reason is ``benchmark``, ``paper``, ``wordnet``, names of sources, or this program.
    """

    key: str
    bibtex: str
    cited_for: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Citation(Jsonable, Tabular):
    """The entries of a benchmark; ``unlisted`` is a recipe's paper without an entry here."""

    derived: ClassVar[tuple[str, ...]] = ("bibtex",)

    benchmark: str
    entries: Sequence[Entry]
    unlisted: str | None = None

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return key, BibTeX and reason of each entry."""
        return [vars(entry) for entry in self.entries]

    @property
    def bibtex(self) -> str:
        """Return the whole as a .bib file."""
        return "\n\n".join(entry.bibtex for entry in self.entries) + "\n"


def citation_of(
    benchmark: str,
    paper: str,
    sources: Iterable[str],
    declarations: Mapping[str, Declaration],
    *,
    by_author: Mapping[str, str] | None = None,
) -> Citation:
    """Return the BibTeX entries of a paper, WordNet, sources and this program, each key once.

    Parameters
    ----------
    paper : its name in the list of papers, or any title.
    declarations : declarations of sources that are not shipped.
    by_author : reason -> BibTeX given by the author of the benchmark; it comes first.
    """
    unlisted = None
    entries: dict[str, Entry] = {}
    for cited_for, bibtex in (by_author or {}).items():
        _add(entries, bibtex, cited_for)
    if paper in paper_names() and paper != WORDNET:
        _add(entries, paper_bibtex(paper), "paper")
    elif paper:
        unlisted = paper
    _add(entries, paper_bibtex(WORDNET), WORDNET)
    known = Sources.of(declarations)
    for name in sources:
        _add(entries, source_info(name, known).bibtex, name)
    _add(entries, own_bibtex(), OWN)
    return Citation(benchmark, [*entries.values()], unlisted)


def own_bibtex() -> str:
    """Return the BibTeX entry of this program, with its version."""
    fields = {
        "title": "wordnet-splits: Benchmarks for What a Vision Model Does Not Know",
        "author": "{The wordnet-splits developers}",
        "version": version("wordnet-splits"),
        "year": "2026",
        "url": "https://pypi.org/project/wordnet-splits/",
    }
    return bibtex_entry("software", "wordnetsplits", fields)


def paper_names() -> tuple[str, ...]:
    """Return the names that a recipe may give as ``paper``, and ``wordnet``, sorted."""
    return tuple(sorted(_papers()))


def paper_title(name: str) -> str:
    """Return the title of a paper as plain text, or ``name`` if the paper is not in the list of papers."""
    title = str(_papers().get(name, {}).get("title", name))
    return title.replace("{", "").replace("}", "")


def paper_bibtex(name: str) -> str:
    """Return the BibTeX entry of a paper; UnknownNameError if the paper is not listed."""
    if name not in _papers():
        raise unknown("paper", name, paper_names())
    fields = dict(_papers()[name])
    kind, key = fields.pop("type"), fields.pop("key")
    fields["author"] = " and ".join(fields["author"])
    return bibtex_entry(kind, key, fields)


@cache
def _papers() -> dict[str, dict[str, Any]]:
    path = files("wordnet_splits") / "data" / "papers.toml"
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"cannot be read: {error}", where=str(path), hint="install it again") from None


def _add(entries: dict[str, Entry], bibtex: str, cited_for: str) -> None:
    """Enter a BibTeX text under its key, once; a source may have none."""
    text = bibtex.strip()
    if not text:
        return
    key = text.partition("{")[2].partition(",")[0].strip()
    entries.setdefault(key, Entry(key, text)).cited_for.append(cited_for)
