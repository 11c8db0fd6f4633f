"""The datasets this package reads, by name: their metadata, the source that opens each, and citations."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.about import bibtex_entry
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.datasets.catalog import catalog_names
from wordnet_splits.datasets.catalog.declarations import (
    LOCAL,
    Declaration,
    Sources,
    register_declaration,
    unknown_source,
)
from wordnet_splits.datasets.catalog.table import CATALOGS_OF_PACKAGES
from wordnet_splits.datasets.sources.layouts.walk import check_root
from wordnet_splits.datasets.sources.source import SOURCES, Download, HubCopy, Source, SourceInfo

VARIABLE_PREFIX = "WORDNET_SPLITS_ROOT_"
WORDNET = "wordnet"
OWN = "wordnet-splits"


def is_registered(name: str) -> bool:
    """Return whether a source is shipped, or of another package."""
    return name in _table() or name in _not_in_table()


def is_installed(name: str) -> bool:
    """Return whether this program or another package has a source or a catalog of that name."""
    return is_registered(name) or name in CATALOGS_OF_PACKAGES


def registered_sources() -> tuple[str, ...]:
    """Return the names of these sources, in the order of ``data/sources.toml``."""
    return (*_table(), *_not_in_table())


def _not_in_table() -> list[str]:
    """Return the sources that ``data/sources.toml`` lacks: with a shipped catalog, and of other packages."""
    names = {*catalog_names(), *SOURCES.added} - set(_table())
    return sorted(name for name in names if name in SOURCES)


def shipped_module(name: str) -> str:
    """Return the module that reads a source of ``data/sources.toml``, "" if that does not name it."""
    return _table()[name].module if name in _table() else ""


def source_info(name: str, sources: Sources = LOCAL) -> SourceInfo:
    """Return the metadata of a source; an unknown name is refused with the nearest ones."""
    if name in _table():
        return _table()[name]
    if name in _not_in_table():
        return SOURCES[name].info or SourceInfo(name)
    declaration = sources.find(name)
    if declaration is None:
        raise unknown_source(name, (*registered_sources(), *sources.by_name))
    return _declared_info(declaration)


def _declared_info(declaration: Declaration) -> SourceInfo:
    title = declaration.title or f"own dataset, layout {declaration.layout}"
    return SourceInfo(
        name=declaration.name,
        title=title,
        url=declaration.url or declaration.about.url or "",
        licence=declaration.licence or declaration.about.licence or "",
        how=f"it is declared in {declaration.file}",
        bibtex=declaration.bibtex or declaration.about.bibtex(f"{declaration.name}-dataset", title),
    )


@cache
def _table() -> dict[str, SourceInfo]:
    text = (files("wordnet_splits") / "data" / "sources.toml").read_text("utf-8")
    return {
        name: SourceInfo(
            name=name,
            files=tuple(Download(**item) for item in entry.pop("files", ())),
            hub=HubCopy(**entry.pop("hub")) if "hub" in entry else None,
            **{key: value.strip() for key, value in entry.items()},
        )
        for name, entry in tomllib.loads(text).items()
    }


def source_names(sources: Sources = LOCAL) -> tuple[str, ...]:
    """Return the names of all sources that can be opened: registered ones, then declared ones."""
    return (*registered_sources(), *sources.by_name)


def source_class(name: str, sources: Sources = LOCAL) -> type[Source]:
    """Return the class that reads ``name``; an unknown name is refused with the nearest ones."""
    if is_registered(name):
        return SOURCES.find(name, module=shipped_module(name))
    declaration = sources.find(name)
    if declaration is None:
        raise unknown_source(name, source_names(sources))
    from wordnet_splits.datasets.sources.declared import declared_class

    return declared_class(declaration)


def check_source(
    name: str, root: Path | None = None, sources: Sources = LOCAL, *, where: str | None = None
) -> None:
    """Refuse the name of an unknown source; a ``dataset.toml`` under ``root`` may declare it.

    Raises
    ------
    UnknownNameError : no such source.
    DataError : ``dataset.toml`` is malformed, or declares another dataset.
    """
    if is_registered(name):
        return
    if root is not None:
        register_declaration(root, name, sources)
    if sources.find(name) is None:
        raise unknown_source(name, source_names(sources), where=where, root=root)


def root_variable(name: str) -> str:
    """Return the environment variable that holds a source's root: ``WORDNET_SPLITS_ROOT_TINY_IMAGENET``."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def open_source(name: str, root: Path | str | None = None, sources: Sources = LOCAL, **params: Any) -> Source:
    """Open a dataset under a root, in any of its known layouts.

    Parameters
    ----------
    name : a source's name, one of :func:`source_names`.
    root : the dataset's folder; None for embedded and generated sources.
    sources : the datasets of a benchmark, which may declare this one.
    params : parameters of a generated source (``shape``, ``seed``).

    Raises
    ------
    UnknownNameError : no such source.
    SourceError : the root is absent, empty, unreadable or of another dataset.
    """
    check_source(name, None if root is None else Path(root), sources)
    cls = source_class(name, sources)
    if not cls.rooted:
        if root is not None:
            raise SourceError(f"source {name} is built in: remove its root", where=str(root))
        return cls.open(None, next(cls.layouts(Path())), **params)
    if root is None:
        hint = f"--root {name}=DIR, or {root_variable(name)}; {source_info(name, sources).how}"
        raise SourceError(f"no root given for source {name}", hint=hint)
    folder = check_root(Path(root), name, hint=source_info(name, sources).how)
    layout = next(cls.layouts(folder), None)
    if layout is None or not cls.is_unambiguous(folder):
        recognised = recognise(folder, other_than=name)
        if recognised or layout is None:
            looks_like = f"; it looks like {recognised}" if recognised else ""
            message = f"this is not {cls.name}: looked for {cls.expected_files}{looks_like}"
            raise SourceError(message, where=str(folder), hint=source_info(name, sources).how)
    layout.prepare()
    return cls.open(folder, layout, **params)


def recognise(folder: Path, other_than: str = "") -> str | None:
    """Return a shipped source, whose layout a folder certainly has."""
    for name in registered_sources():
        if name == other_than or not source_class(name).rooted:
            continue
        try:
            if source_class(name).is_unambiguous(folder):
                return name
        except SourceError:  # a folder another source cannot even walk is not that source
            continue
    return None


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
    by_wordnet: bool = True,
) -> Citation:
    """Return the BibTeX entries of a paper, WordNet, sources and this program, each key once.

    Parameters
    ----------
    paper : its name in the list of papers, or any title.
    declarations : declarations of sources that are not shipped.
    by_author : reason -> BibTeX given by the author of the benchmark; it comes first.
    by_wordnet : whether WordNet decides the benchmark.
    """
    unlisted = None
    entries: dict[str, Entry] = {}
    for cited_for, bibtex in (by_author or {}).items():
        _add(entries, bibtex, cited_for)
    if paper in paper_names() and paper != WORDNET:
        _add(entries, paper_bibtex(paper), "paper")
    elif paper:
        unlisted = paper
    if by_wordnet:
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
