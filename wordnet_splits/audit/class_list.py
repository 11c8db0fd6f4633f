"""Lists of classes: files of wnids, names or indices, catalogs, sources, shipped lists, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wordnet_splits.audit.list_files import MAX_EXAMPLES, Entries, one_line, read_entries
from wordnet_splits.base.errors import LONGEST_SHOWN, DataError, SplitsError, UnknownNameError, unknown
from wordnet_splits.base.names import printable, same_spelling
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.construct.classes import decide_membership
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import Check, frozen_folder, manifest_names
from wordnet_splits.benchmark.recipe import class_set_names, load_recipe
from wordnet_splits.benchmark.resolve import has_manifest, is_path, load_manifest
from wordnet_splits.datasets.catalog import FIXED_COLUMNS, CatalogClass, load_catalog, read_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources
from wordnet_splits.datasets.catalog.inventory import available_lists, find_list
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.datasets.catalog.table import covered, known_sources
from wordnet_splits.wordnet.taxonomy import Taxonomy, load
from wordnet_splits.wordnet.taxonomy.identifiers import identify

ClassListLike = str | Path | Iterable[str | int]
"""Classes as `load_class_list` takes them."""


@dataclass(frozen=True)
class ListedClass:
    """A class and its synsets; ``mapped`` : how a catalog maps the class to them.

    ``unconfirmed`` : whether the synsets were proposed at low confidence and not confirmed.
    """

    id: str
    name: str
    wnids: tuple[str, ...]
    unconfirmed: bool = False
    mapped: str = "exact"

    @property
    def covers(self) -> tuple[str, ...]:
        """Synsets whose hyponyms all belong to this class."""
        return covered(self.wnids, self.mapped)


@dataclass(frozen=True)
class ClassList:
    """The classes of a list, each once.

    Attributes
    ----------
    first_sense : names of several senses, read as their first.
    manifest, group : the benchmark and its group, for the classes of a group.
    given_as : ``name`` of a list, ``file`` or ``entries``.
    """

    name: str
    classes: tuple[ListedClass, ...]
    repeated: int = 0
    first_sense: tuple[str, ...] = ()
    manifest: Manifest | None = None
    group: str | None = None
    given_as: Literal["name", "file", "entries"] = "name"

    @property
    def names(self) -> dict[str, str]:
        """Return the name of each class by its id."""
        return {item.id: item.name for item in self.classes}

    @property
    def by_id(self) -> dict[str, ListedClass]:
        """Return each class by its id."""
        return {item.id: item for item in self.classes}

    def confirmed(self) -> ClassList:
        """Return the same classes, without synsets that are not confirmed."""
        classes = (replace(item, wnids=()) if item.unconfirmed else item for item in self.classes)
        return replace(self, classes=tuple(classes))

    def require_synsets(self, taxonomy: Taxonomy) -> ClassList:
        """Return the list. Raises DataError if no class has a synset."""
        if not any(item.wnids for item in self.classes):
            reason = f"no known class has a {taxonomy.noun}"
            raise DataError(reason, where=self.name, hint="give other known classes")
        return self

    def as_known(self, taxonomy: Taxonomy) -> ClassList:
        """Return the classes as `confirmed` does, for comparison with them; DataError without a synset."""
        return self.confirmed().require_synsets(taxonomy)

    @property
    def without_synset(self) -> tuple[str, ...]:
        """Ids of the classes that have no synset."""
        return tuple(item.id for item in self.classes if not item.wnids)


def hierarchy_of_lists(
    *lists: ClassListLike,
    of: str | None = None,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> Taxonomy:
    """Return the own hierarchy of lists' benchmarks and datasets, else ``taxonomy`` (default WordNet 3.0).

    Files and entries without ``of`` are in the hierarchy of the other lists. Raises DataError for two.
    """
    found = {str(n): own for n, own in (_own_hierarchy(x, of, manifests) for x in lists) if n is not None}
    name, own = next(((name, own) for name, own in found.items() if own), ("", None))
    if own is None:
        return load(taxonomy)
    result = own.taxonomy()
    differing = [other for other, its in found.items() if its is None or not own.is_same(its)]
    if differing or (taxonomy is not None and load(taxonomy).digest != result.digest):
        what = f"must be in the hierarchy {result.title} of {name}"
        raise DataError(what, where=[*differing, "taxonomy"][0], hint="compare classes of one hierarchy")
    return result


def _own_hierarchy(
    classes: ClassListLike, of: str | None, manifests: Path | None
) -> tuple[object, OwnHierarchy | None]:
    """Return the name of a list, None if its classes may be in any hierarchy, and its own hierarchy."""
    name = str(classes) if isinstance(classes, str | Path) else ""
    source = name if name in known_sources() else of
    if name and name != source:
        if name in available_lists() or name.partition(":")[0] in class_set_names():
            return name, None
        if (group := is_group(name, manifests)) or has_manifest(name, manifests):
            benchmark = name.rpartition(":")[0] if group else name
            return name, load_manifest(benchmark, manifests, check="none").own_hierarchy
    declaration = None if source is None else LOCAL.find(source)
    own = None if declaration is None else declaration.hierarchy
    return None if source is None else name or "entries", own


def load_class_list(
    classes: ClassListLike,
    taxonomy: Taxonomy,
    *,
    of: str | None = None,
    column: str | None = None,
    manifests: Path | None = None,
    check: Check = "classes",
) -> ClassList:
    """Return the classes of a list.

    Parameters
    ----------
    classes : a source, ours or a user's own (``ssb-hard``: its catalog), a shipped list of images
        (``openood/imagenet_test_ssb_hard``: its classes), a list of the field that a recipe rebuilds
        (``tiered-imagenet``: the published classes), a group in such a list or in a benchmark, given by a
        frozen name, a path or an address on the Hub (``tiered-imagenet:test``, ``unknown-imagenet:food``,
        ``build/mine:food``), a file, or the entries.
    of : the source whose class ids, names and indices the entries are; without it they are wnids and nouns
        of WordNet.
    column : of a file: the table's column by name or number from 1, or the key of a JSON object.
    check : parts of a benchmark to compare with its fingerprints, see `load_manifest`.
    """
    if isinstance(classes, str | Path):
        text = str(classes)
        if named_classes := _known(text, taxonomy):
            return ClassList(text, tuple(named_classes))
        if is_group(text, manifests):
            benchmark, _, group = text.rpartition(":")  # an address on the Hub has a colon of its own
            return group_classes(load_manifest(benchmark, manifests, check=check), group, text)
        path = Path(classes)
        if (path / "manifest.json").is_file() or (not path.exists() and text in manifest_names(manifests)):
            groups = load_manifest(classes, manifests, check=check).groups
            addresses = ", ".join(dict.fromkeys(f"{text}:{row.group}" for row in groups))
            raise DataError(
                "must be a list of classes, got a benchmark", where=text, hint=f"give a group: {addresses}"
            )
        if not path.exists():
            if path.suffix or is_path(text):
                raise DataError("no such file of classes", where=text)
            benchmark, colon, _ = text.rpartition(":")
            if colon:
                raise unknown("benchmark", benchmark, manifest_names(manifests), where=text)
            names = (*known_sources(), *available_lists(), *class_set_names(), *manifest_names(manifests))
            error = unknown("list of classes", text, names)
            hint = error.hint or "or a file of wnids, names or indices; BENCHMARK:GROUP for a group"
            raise UnknownNameError(error.what, near=error.near, hint=hint)
        if of is None and column is None and _is_catalog(path):
            return ClassList(path.name, tuple(_of_catalog(item) for item in read_catalog(path)))
        return replace(_resolved(path.name, read_entries(path, column), taxonomy, of), given_as="file")
    entries = [(f"entry {n}", str(e)) for n, e in enumerate(classes, 1)]
    return replace(_resolved("list", entries, taxonomy, of), given_as="entries")


def load_two_class_lists(
    classes: ClassListLike,
    against: ClassListLike,
    taxonomy: Taxonomy,
    *,
    of: str | None = None,
    column: str | None = None,
    manifests: Path | None = None,
    check: Check = "classes",
) -> tuple[ClassList, ClassList]:
    """Return the classes of two lists to compare, each by `load_class_list`."""
    listed, known = (
        load_class_list(names, taxonomy, of=of, column=column, manifests=manifests, check=check)
        for names in (classes, against)
    )
    for name, value, kinds in (("of", of, ("file", "entries")), ("column", column, ("file",))):
        if value is not None and not {listed.given_as, known.given_as}.intersection(kinds):
            raise DataError(
                f"{name} = {value!r} only applies to a {' or '.join(kinds)}, got {listed.name}, {known.name}",
                hint="leave it out",
            )
    return listed, known


def group_classes(manifest: Manifest, group: str, name: str | None = None) -> ClassList:
    """Return the classes of a group of a benchmark; ``name`` is BENCHMARK:GROUP by default."""
    classes = _of_manifest(manifest, group)
    return ClassList(name or f"{manifest.name}:{group}", classes, manifest=manifest, group=group)


def is_group(name: str, manifests: Path | None) -> bool:
    """Return whether ``BENCHMARK:GROUP`` names a group of a benchmark."""
    benchmark = name.rpartition(":")[0]
    of_path = is_path(benchmark) and not Path(name).exists()  # a file's name may have a colon, too
    return of_path or frozen_folder(benchmark, manifests) is not None


def _is_catalog(path: Path) -> bool:
    """Return whether a file has the columns of a catalog."""
    if path.suffix != ".tsv":
        return False
    head = next((line for line in read_text(path).splitlines() if not line.startswith("#")), "")
    return tuple(head.split("\t")[: len(FIXED_COLUMNS)]) == FIXED_COLUMNS


def _known(name: str, taxonomy: Taxonomy) -> Sequence[ListedClass]:
    """Return the classes of a list with a shipped or declared name; none of any other."""
    if name in known_sources():
        return [_of_catalog(c) for c in load_catalog(name)]
    if name in available_lists():
        table = find_list(name).select(["source", "class_id"])
        pairs = dict.fromkeys(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return [_of_catalog(load_catalog(s)[i]) for s, i in pairs]
    if name in class_set_names():
        return _of_class_set(name, None, taxonomy)
    class_set, _, group = name.rpartition(":")
    return _of_class_set(class_set, group, taxonomy) if class_set in class_set_names() else ()


def _of_manifest(manifest: Manifest, group: str) -> tuple[ListedClass, ...]:
    """Return the classes of a group; their catalogs, not the class table, record how they are mapped."""
    rows = manifest.classes.select(["group", "source", "class_id", "name", "wnids"]).to_pylist()
    if group not in (groups := {row["group"] for row in rows} - {""}):
        raise unknown("group", group, groups, where=manifest.name)
    of_group = [row for row in rows if row["group"] == group]
    datasets = Sources(manifest.declarations, manifest.own_hierarchy)
    catalogs = {source: load_catalog(source, datasets) for source in {row["source"] for row in of_group}}
    return tuple(
        replace(
            _of_catalog(catalogs[row["source"]][row["class_id"]]),
            name=row["name"],
            wnids=tuple(row["wnids"]),
        )
        for row in of_group
    )


def _of_class_set(name: str, only: str | None, taxonomy: Taxonomy) -> Sequence[ListedClass]:
    """Return the classes of a group in a set, or of every published group."""
    recipe = load_recipe(name)
    every = [group.name for group in recipe.group]
    if only is not None and only not in every:
        raise unknown("group", only, every, where=name)
    published_groups = recipe.published_list.groups if recipe.published_list else None
    group_names = [only] if only is not None else list(published_groups or every)
    groups = decide_membership(recipe, recipe.seed, taxonomy).groups
    items = (load_catalog(g.source)[c] for g in recipe.group if g.name in group_names for c in groups[g.name])
    return [_of_catalog(item) for item in items]


def _of_catalog(item: CatalogClass) -> ListedClass:
    return ListedClass(item.class_id, item.name, item.wnids, item.is_unconfirmed, item.mapped)


def _resolved(name: str, entries: Entries, taxonomy: Taxonomy, of: str | None) -> ClassList:
    find = _of_source(of) if of is not None else _of_wordnet(taxonomy)
    classes: dict[str, ListedClass] = {}
    guessed: dict[str, None] = {}
    failed: list[tuple[str, str, SplitsError]] = []
    resolved_count = 0
    for position, text in entries:
        try:
            item = find(text)
        except SplitsError as error:
            failed.append((position, text, error))
            continue
        resolved_count += 1
        classes.setdefault(item.id, item)
        if of is None and len(taxonomy.senses(text.replace(" ", "_"))) > 1:
            guessed[text] = None
    if failed and len(entries) == 1 and len(cells := [c for c in failed[0][1].split(",") if c.strip()]) > 1:
        raise one_line(len(cells), name)
    if failed:
        examples = ", ".join(
            f"{printable(text, LONGEST_SHOWN)!r} ({position})" for position, text, _ in failed[:MAX_EXAMPLES]
        )
        remainder = f" and {len(failed) - MAX_EXAMPLES:,} more" if len(failed) > MAX_EXAMPLES else ""
        first_error = failed[0][2]
        reason = f"cannot find a class for {len(failed):,} of {len(entries):,} entries: {examples}{remainder}"
        raise UnknownNameError(
            reason, where=name, near=first_error.near, hint=None if first_error.near else first_error.hint
        )
    return ClassList(name, tuple(classes.values()), resolved_count - len(classes), tuple(guessed))


def _of_wordnet(taxonomy: Taxonomy) -> Callable[[str], ListedClass]:
    def find(text: str) -> ListedClass:
        if text.isdecimal():
            raise UnknownNameError(
                f"the index {text} needs a source", hint="give --of SOURCE, as in --of imagenet1k"
            )
        known = identify(text, taxonomy, {})
        if known and not known.wnid and text[0] != "n":
            hint = "give a catalog that `catalog make --ids MAP.tsv` made of the list"
            raise UnknownNameError(f"{text} has no known synset ({known.scheme})", hint=hint)
        wnid = known.wnid if known and known.wnid else taxonomy.find(text)
        return ListedClass(text, taxonomy.name(wnid), (wnid,))

    return find


def _of_source(source: str) -> Callable[[str], ListedClass]:
    catalog = load_catalog(source)
    names: dict[str, dict[str, CatalogClass]] = {}
    for item in catalog:
        for word in (item.name, *item.name.split(", ")):
            names.setdefault(_folded(word), {})[item.class_id] = item
    by_index: Mapping[str, CatalogClass] = {str(item.index): item for item in catalog}

    def find(text: str) -> ListedClass:
        if text in catalog:
            return _of_catalog(catalog[text])
        matches = list(names.get(_folded(text), {}).values())
        matches = [item for item in matches if item.name == text] or matches  # Turkey and turkey
        if len(matches) > 1:
            raise UnknownNameError(
                f"{text!r} is the name of {len(matches)} classes", near=[c.class_id for c in matches]
            )
        item = matches[0] if matches else by_index.get(text)
        if item is None:
            raise unknown("class", text, {*names, *(c.class_id for c in catalog)})
        return _of_catalog(item)

    return find


def _folded(word: str) -> str:
    return same_spelling(word).casefold()
