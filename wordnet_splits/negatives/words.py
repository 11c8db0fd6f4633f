"""Audit the negative words of a vision-language detector: which words name ID classes or test classes.

NegLabel (Jiang et al., Negative Label Guided OOD Detection with Pretrained Vision-Language Models, ICLR 2024)
and its kin give a text encoder words that are not ID classes, and score an image by its similarity to the ID
names against that to these words. A word that names an ID class pulls ID images to the wrong side; a word
that names a class of an OOD set reveals the test set to the detector.

An encoder reads a word, not a synset. A word is read as the first of its senses, WordNet's most frequent:
it *equals*, is *below* or is *above* an ID class by that sense. A word that is the name of an ID class only
in another sense, or is not a noun, is a *namesake*, whatever its first sense is below or above. A word
*names* a class of an OOD set if it is one of the class's names, in any sense, or if its first sense is the
class's synset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from wordnet_splits.audit.class_list import (
    ClassList,
    ClassListLike,
    ListedClass,
    group_classes,
    hierarchy_of_lists,
    is_group,
    load_class_list,
)
from wordnet_splits.audit.images import image_counts
from wordnet_splits.audit.report import NAMESAKE
from wordnet_splits.base.errors import DataError, ManifestError
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import frozen_folders
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.resolve import has_manifest, load_manifest
from wordnet_splits.benchmark.rules.keywords import folded_name
from wordnet_splits.benchmark.rules.relations import Kin, KnownClasses
from wordnet_splits.datasets.word_lists import Word, read_words
from wordnet_splits.negatives.ledger import NamedClass, NegativesAudit, NegativeWord, OodSetCount
from wordnet_splits.wordnet.taxonomy import Taxonomy

OOD_ROLES = ("near", "far")


def audit_negatives(
    words: str | Path | Iterable[str],
    known: ClassListLike = "imagenet1k",
    *,
    ood: Sequence[str] | str | None = None,
    column: str | None = None,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> NegativesAudit:
    """Compare negative words with ID classes and with the classes of OOD sets, by WordNet.

    Parameters
    ----------
    words : a file with a word a line, or a table (TSV, or CSV by its ending) with a column ``word``, or the
        words themselves. Words whose column ``kind`` is not ``noun`` are compared by name only.
    known : the ID classes, as of `audit_classes`.
    ood : lists of classes as for `audit_classes` (``ssb-hard``), or benchmarks, for their near and far
        groups; default: every benchmark with these ID classes, except sets contained in another set.
    column : the column of the words, by name.
    taxonomy : default that of the ID classes' benchmark or dataset, else the embedded WordNet 3.0.
    manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : no such list or benchmark.
    DataError : a file without words, no ID class with a synset, or two OOD sets with the same name.

    Examples
    --------
    >>> report = audit_negatives(["castle", "Balmoral Castle", "waffle iron", "axolotl", "crane"])
    >>> [word.relation for word in report.words]
    ['namesake', 'below', 'equal', 'equal', 'namesake']
    """
    ood = [ood] if isinstance(ood, str) else ood
    taxonomy = hierarchy_of_lists(known, *(ood or ()), taxonomy=taxonomy, manifests=manifests)
    word_list = read_words(words, column)
    known_classes = load_class_list(known, taxonomy, manifests=manifests).as_known(taxonomy)
    if ood is None:
        ood_sets = _usual_ood_sets(known_classes, taxonomy, manifests)
    else:
        ood_sets = _by_name(_ood_sets(ood, taxonomy, manifests))
    test_indices = [_NameIndex(ood_set, taxonomy, image_counts(ood_set)) for ood_set in ood_sets]
    senses = [
        taxonomy.senses(word.text.replace(" ", "_")) if word.is_noun else () for word in word_list.words
    ]
    first_senses = {
        word.text: ListedClass(word.text, word.text, wnids[:1])
        for word, wnids in zip(word_list.words, senses, strict=True)
        if wnids
    }
    known_kin = KnownClasses(known_classes.by_id, taxonomy)
    known_index = _NameIndex(known_classes, taxonomy)
    rows = tuple(
        _row(word, wnids, known_kin.kin(first_senses[word.text]) if wnids else (), known_index, test_indices)
        for word, wnids in zip(word_list.words, senses, strict=True)
    )
    return NegativesAudit(
        word_list.name,
        known_classes.name,
        len(known_classes.classes),
        known_classes.without_synset,
        rows,
        tuple(_count(index, rows) for index in test_indices),
        taxonomy,
        word_list,
    )


class _NameIndex:
    """The classes of a list by their names and synsets, and the number of images of each, if known."""

    def __init__(
        self, class_list: ClassList, taxonomy: Taxonomy, images: Mapping[str, int] | None = None
    ) -> None:
        self.class_list, self.taxonomy, self.images = class_list, taxonomy, images
        self.names = class_list.names
        self._classes: dict[str, dict[str, ListedClass]] = {}
        for item in class_list.classes:
            names = [*item.name.split(", "), *(lemma for w in item.covers for lemma in taxonomy.lemmas(w))]
            for key in (*map(folded_name, names), *item.wnids):
                self._classes.setdefault(key, {})[item.id] = item

    def find(self, word: str, senses: Sequence[str]) -> list[ListedClass]:
        """Return the classes that have a word as a name, or its first sense as a synset."""
        keys = (folded_name(word), *senses[:1])
        return list({item.id: item for key in keys for item in self._classes.get(key, {}).values()}.values())

    def named(self, word: str, senses: Sequence[str]) -> list[NamedClass]:
        """Return these classes as those that the word names."""
        return [
            NamedClass(
                self.class_list.name,
                item.id,
                item.name,
                first_sense=not set(senses[:1]).isdisjoint(item.wnids),
                images=None if self.images is None else self.images.get(item.id, 0),
            )
            for item in self.find(word, senses)
        ]


def _row(
    word: Word,
    senses: tuple[str, ...],
    kin: Sequence[Kin[str]],
    known_index: _NameIndex,
    test_indices: Sequence[_NameIndex],
) -> NegativeWord:
    """Return the row of a word, from the ID classes of its first sense."""
    closest = kin[0] if kin else None
    namesakes = known_index.find(word.text, senses)
    relation: str | None = None
    known_id: str | None = None
    path: tuple[str, ...] = ()
    if closest is not None and (closest.relation == "equal" or not namesakes):
        relation, known_id, path = closest.relation, closest.known, closest.path(known_index.taxonomy)
    elif namesakes:
        relation, known_id = NAMESAKE, namesakes[0].id
    return NegativeWord(
        line=word.line,
        word=word.text,
        kind=word.kind,
        senses=senses,
        relation=relation,
        known=known_id,
        known_name=None if known_id is None else known_index.names[known_id],
        edges=len(path) - 1 if path else None,
        path=path,
        kin=len({k.known for k in kin} | {item.id for item in namesakes}),
        names=tuple(named for index in test_indices for named in index.named(word.text, senses)),
    )


def _count(index: _NameIndex, rows: Sequence[NegativeWord]) -> OodSetCount:
    """Return how much of an OOD set the words name."""
    ood_set, images = index.class_list, index.images
    names = [[item for item in row.names if item.ood_set == ood_set.name] for row in rows]
    class_ids = {item.class_id for of_word in names for item in of_word}
    return OodSetCount(
        ood_set=ood_set.name,
        named=len(class_ids),
        first_sense=len({item.class_id for of_word in names for item in of_word if item.first_sense}),
        classes=len(ood_set.classes),
        words=sum(bool(of_word) for of_word in names),
        named_images=None if images is None else sum(images.get(class_id, 0) for class_id in class_ids),
        images=None if images is None else sum(images.values()),
    )


def _ood_sets(names: Iterable[str], taxonomy: Taxonomy, manifests: Path | None) -> Iterator[ClassList]:
    """Yield the class list of each name, or a benchmark's near and far groups as class lists."""
    for name in names:
        is_benchmark = not is_group(name, manifests) and has_manifest(name, manifests)
        if is_benchmark:
            yield from _groups(load_manifest(name, manifests, check="classes"), OOD_ROLES)
        else:
            yield load_class_list(name, taxonomy, manifests=manifests).confirmed()


def _by_name(ood_sets: Iterable[ClassList]) -> list[ClassList]:
    """Return each OOD set once. Raises DataError for two that differ but have one name."""
    by_name: dict[str, ClassList] = {}
    for ood_set in ood_sets:
        if by_name.setdefault(ood_set.name, ood_set).classes != ood_set.classes:
            raise DataError("OOD sets must have distinct names", where=ood_set.name, hint="rename a file")
    return list(by_name.values())


def _groups(manifest: Manifest, roles: Sequence[str]) -> Iterator[ClassList]:
    """Yield the class list of each group of some roles."""
    for group in dict.fromkeys(row.group for row in manifest.groups if row.role in roles):
        yield group_classes(manifest, group).confirmed()


def _usual_ood_sets(known: ClassList, taxonomy: Taxonomy, manifests: Path | None) -> list[ClassList]:
    """Return the near and far groups of the benchmarks with these ID classes, without subsets of others.

    Benchmarks in another hierarchy are left out.
    """
    source = known.manifest.source_of(known.group) if known.manifest and known.group else known.name
    ids = {item.id for item in known.classes}
    ood_sets: list[ClassList] = []
    for folder in frozen_folders(manifests).values():
        path = folder / "manifest.json"
        data = check_data(read_json(path, error=ManifestError), str(path))
        id_rows = [row for row in data.groups if row.role == "id" and row.split == "classes"]
        if [(row.source, row.actual) for row in id_rows] != [(source, len(ids))]:
            continue
        manifest = load_manifest(folder, check="classes")
        own = manifest.own_hierarchy
        if not (taxonomy.is_wordnet if own is None else own.taxonomy().digest == taxonomy.digest):
            continue
        (id_classes,) = _groups(manifest, ["id"])
        if {item.id for item in id_classes.classes} == ids:
            ood_sets += _groups(manifest, OOD_ROLES)
    synsets = [{(item.id, item.wnids) for item in ood_set.classes} for ood_set in ood_sets]
    return [
        ood_set
        for n, ood_set in enumerate(ood_sets)
        if synsets[n] not in synsets[:n] and not any(synsets[n] < larger for larger in synsets)
    ]
