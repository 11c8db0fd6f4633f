"""Robust roles: whether a class keeps its role under another sense, measure, hierarchy or WordNet.

Each reading changes one of these and applies the rules again. ``robust`` is the share of the applicable
readings that give a class the same role.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.parquet import schema_of, write_table
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.construct.classes import decide_membership
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.recipe import Recipe, buildable
from wordnet_splits.benchmark.resolve import find_recipe
from wordnet_splits.benchmark.rules import Key
from wordnet_splits.benchmark.rules.registry import GRAPH, HIERARCHY, MEASURE, SENSE, WORDNET
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.studies import alternatives
from wordnet_splits.studies.alternatives import EXCLUDED, FAMILIES, MEASURE_OF, Outcome
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import OtherWordNet, load_other_wordnet
from wordnet_splits.wordnet.taxonomy.wn_lexicons import installed_lexicons

NO_SYNSET = "it has no {0.noun}"
NO_RULE = "no rule on {0.called} decides its role"
NO_READING = "no reading applies to it"
OWN_COLUMNS = "benchmark source class_id name role candidate group robust:double why"
BUILT_IN = {
    SENSE: "each other sense of its name",
    HIERARCHY: "ImageNet's tree in place of WordNet's graph, or the reverse",
    **{key: f"nearness by {name}, at the same share of near classes" for key, name in MEASURE_OF.items()},
}
"""Reading that uses only embedded data -> its meaning."""
MOST_READ = 5_000
"""Most classes of the OOD sources that `quick_roles` judges; ImageNet-21K takes minutes."""


@dataclass(frozen=True)
class RobustClass:
    """The roles of a class under every reading.

    Attributes
    ----------
    role, group : as in the class table; ``excluded`` and empty without a group.
    candidate : the role by the rules before a draw, which may not have drawn the class.
    robust : share of the applicable readings that give ``candidate``; None, with the reason in ``why``, if
        none applies.
    readings : reading (of `Robust.names`) -> role (several senses: separated by slashes), None if not
        applicable.
    turning_sense : the first other synset of its name that changes the role.
    """

    benchmark: str
    source: str
    class_id: str
    name: str
    role: str
    candidate: str
    group: str
    robust: float | None
    why: str
    readings: Mapping[str, str | None]
    turning_sense: str | None

    def agrees(self, reading: str) -> bool | None:
        """Whether a reading gives the same role, None if it does not apply."""
        role = self.readings[reading]
        return None if role is None else role == self.candidate


@dataclass(frozen=True)
class Robust(Tabular):
    """The classes of the benchmarks under every reading.

    Attributes
    ----------
    names : the readings.
    unmapped : other WordNet -> number of classes of the catalogs without a synset in it.
    notes : readings that do not apply to a benchmark, with reasons.
    """

    classes: Sequence[RobustClass]
    names: Sequence[str]
    unmapped: Mapping[str, int]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[dict[str, Any]]:
        """Return a row per class, with a column per reading."""
        return [
            {key: value for key, value in vars(item).items() if key not in ("readings", "turning_sense")}
            | {name: item.readings[name] for name in self.names}
            | {"turning_sense": item.turning_sense}
            for item in self.classes
        ]

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        columns = [name.replace(":", "-") for name in self.names]
        schema = schema_of(" ".join([OWN_COLUMNS, *columns, "turning_sense"]))
        return pa.Table.from_pylist(list(self.rows()), schema)

    def write(self, path: Path) -> None:
        """Write the rows as Parquet. Raises OutputError."""
        write_table(self.to_table(), path)

    def counts(self) -> list[dict[str, Any]]:
        """Return, by benchmark and role, [classes with the same role, classes it applies to] by reading."""
        rows = []
        groups = dict.fromkeys((item.benchmark, item.candidate) for item in self.classes)
        for benchmark, role in groups:
            classes = [c for c in self.classes if (c.benchmark, c.candidate) == (benchmark, role)]
            judged = [item.robust for item in classes if item.robust is not None]
            row: dict[str, Any] = {"benchmark": benchmark, "role": role, "classes": len(classes)}
            row |= {"read": len(judged), "all_agree": sum(share == 1 for share in judged)}
            row["share"] = sum(judged) / len(judged) if judged else None
            for name in self.names:
                agree = [agrees for item in classes if (agrees := item.agrees(name)) is not None]
                row[name] = [sum(agree), len(agree)]
            rows.append(row)
        return rows

    def reasons(self) -> dict[str, int]:
        """Return reason -> number of classes without an applicable reading."""
        return dict(Counter(item.why for item in self.classes if item.why))

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit robust --json`` prints."""
        return {
            "readings": list(self.names),
            "counts": self.counts(),
            "unmapped": dict(self.unmapped),
            "notes": list(self.notes),
            "classes": self.rows(),
        }


def robust_roles(
    benchmark: Recipe | str | Path | Iterable[str] = "all",
    *,
    wordnets: Sequence[str | Path] | None = None,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> Robust:
    """Return the role of every class of a benchmark under each reading.

    Parameters
    ----------
    benchmark : a recipe, a benchmark's name, several, or ``all`` that can be built.
    wordnets : other WordNets, folders of WNDB files or lexicons of `wn`; by default the lexicons installed.
    taxonomy : the WordNet of benchmarks without their own hierarchy. Only WordNet has other readings.

    Raises
    ------
    UnknownNameError : no such benchmark. TaxonomyError : no such WordNet.

    Examples
    --------
    >>> report = robust_roles("rungs-cifar100", wordnets=[])
    >>> [(c.name, c.candidate, c.readings["path"]) for c in report.classes if c.name == "wolf"]
    [('wolf', 'near', 'near')]
    """
    lexicons = installed_lexicons() if wordnets is None else wordnets
    other_wordnets = [load_other_wordnet(item) for item in lexicons]
    if isinstance(benchmark, str) and benchmark == "all":
        benchmark = buildable()
    benchmarks = [benchmark] if isinstance(benchmark, Recipe | str | Path) else list(benchmark)
    recipes = [find_recipe(item, manifests) for item in benchmarks]
    notes: list[str] = []
    datasets = Sources.of(*(recipe.declarations for recipe in recipes))
    hierarchies = [taxonomy_of(recipe, taxonomy) for recipe in recipes]
    judged = list(zip(recipes, hierarchies, strict=True))
    classes = [item for recipe, of in judged for item in _classes(recipe, other_wordnets, of, notes)]
    sources = sorted({source for recipe, of in judged if of.is_wordnet for source in recipe.sources})
    mapped = [item for source in sources for item in load_catalog(source, datasets) if item.wnids]
    unmapped = {o.name: sum(not any(map(o.synset, item.wnids)) for item in mapped) for o in other_wordnets}
    return Robust(classes, (*BUILT_IN, *(o.name for o in other_wordnets)), unmapped, tuple(notes))


def quick_roles(recipe: Recipe) -> Robust | None:
    """Return the roles under the readings that need no other WordNet; None above `MOST_READ` classes."""
    sources = {group.source for group in recipe.group if group.role in ("near", "far")}
    if sum(len(load_catalog(source, recipe.datasets)) for source in sources) > MOST_READ:
        return None
    return robust_roles(recipe, wordnets=[])


def _classes(
    recipe: Recipe, other_wordnets: Sequence[OtherWordNet], taxonomy: Taxonomy, notes: list[str]
) -> Iterator[RobustClass]:
    base = alternatives.decide_in(recipe, alternatives.original(recipe, taxonomy), taxonomy)
    kinds, datasets = alternatives.readings_used(recipe), recipe.datasets
    roles = _roles(recipe, base, taxonomy)
    outcomes = dict(_outcomes(recipe, kinds, other_wordnets, taxonomy, notes))
    kind_of = {HIERARCHY: HIERARCHY} | dict.fromkeys(FAMILIES, MEASURE)
    senses = alternatives.roles_by_sense(base, taxonomy) if _reads(recipe, kinds, SENSE) else {}
    for key, group_names in base.offered_to.items():
        item = load_catalog(key[0], datasets)[key[1]]
        kinds_of_class = frozenset[str]().union(*(kinds[name] for name in group_names))
        leaks = any(base.leak_indexes.get(name) for name in group_names if key[1] in base.groups[name])
        read_by_leaks = GRAPH if leaks else frozenset[str]()
        kinds_of_class |= read_by_leaks
        candidate = base.role(key)
        role_by_reading: dict[str, str | None] = dict.fromkeys((*BUILT_IN, *(o.name for o in other_wordnets)))
        for name, outcome in outcomes.items():
            of_rules = frozenset[str]().union(
                *(kinds[group] for group in group_names if group not in outcome.idle)
            )
            applies = kind_of.get(name, WORDNET) in of_rules | read_by_leaks
            wnids = outcome.alternative.catalog(key[0])[key[1]].wnids
            role_by_reading[name] = outcome.role(key) if applies and wnids else None
        by_sense = senses.get(key, []) if SENSE in kinds_of_class and item.wnids else []
        role_by_reading[SENSE] = "/".join(dict.fromkeys(role for _, role in by_sense)) or None
        agree = [role == candidate for role in role_by_reading.values() if role is not None]
        why = ""
        if not item.wnids:
            why = NO_SYNSET.format(taxonomy)
        elif not kinds_of_class:
            why = NO_RULE.format(taxonomy)
        elif not agree:
            why = NO_READING
        if why:
            agree, role_by_reading = [], dict.fromkeys(role_by_reading)
        role, group = roles[key]
        yield RobustClass(
            recipe.name,
            *key,
            item.name,
            role,
            candidate,
            group,
            sum(agree) / len(agree) if agree else None,
            why,
            role_by_reading,
            next((wnid for wnid, role in by_sense if role != candidate), None) if agree else None,
        )


def _reads(recipe: Recipe, kinds: Mapping[str, frozenset[str]], kind: str) -> bool:
    return any(kind in group_kinds for group_kinds in kinds.values()) or (recipe.drop_leaks and kind in GRAPH)


def _roles(recipe: Recipe, base: Outcome, taxonomy: Taxonomy) -> dict[Key, tuple[str, str]]:
    """Return role and group of each class as in the class table, after draws."""
    classes_by_group: Mapping[str, Sequence[str]] = base.groups
    if any(g.classes is not alternatives.without_draw(recipe, g) for g in recipe.group):
        classes_by_group = decide_membership(recipe, recipe.seed, taxonomy).groups
    roles = dict.fromkeys(base.offered_to, (EXCLUDED, ""))
    for group in reversed(recipe.group):  # the first group of a class counts
        for class_id in classes_by_group[group.name]:
            if (group.source, class_id) not in base.dropped:
                roles[group.source, class_id] = group.role, group.name
    return roles


def _outcomes(
    recipe: Recipe,
    kinds: Mapping[str, frozenset[str]],
    other_wordnets: Sequence[OtherWordNet],
    taxonomy: Taxonomy,
    notes: list[str],
) -> Iterator[tuple[str, Outcome]]:
    """Yield (reading, outcome) for the other hierarchy, other measures and other WordNets."""
    if not taxonomy.is_wordnet:
        notes.append(f"{recipe.name}: no other hierarchy or WordNet to read it by, only {taxonomy.title}")
    if taxonomy.is_wordnet and _reads(recipe, kinds, HIERARCHY):
        other = alternatives.other_hierarchy(recipe, taxonomy)
        yield HIERARCHY, alternatives.decide_in(recipe, other, taxonomy)
    for measure in alternatives.measures_for(recipe):
        yield measure, alternatives.by_measure(recipe, measure, taxonomy)
    for wordnet in other_wordnets if taxonomy.is_wordnet and _reads(recipe, kinds, WORDNET) else ():
        try:
            other = alternatives.other_wordnet(recipe, wordnet)
            yield wordnet.name, alternatives.decide_in(recipe, other, taxonomy)
        except TaxonomyError as error:
            notes.append(f"{recipe.name}: {wordnet.name} cannot be applied: {error.what}")
