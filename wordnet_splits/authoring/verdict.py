"""The verdict on a new benchmark: its sets, how far their roles hold, its power, a reviewer's questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import counted, listed
from wordnet_splits.benchmark.detectable import power
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.benchmark.rules import Expression, Key
from wordnet_splits.benchmark.rules.phrases import rule_words
from wordnet_splits.metrics.uncertainty import FEW_CLUSTERS
from wordnet_splits.studies.robust import Robust, quick_roles

LEAST_SHARE = 0.5
"""Least share of readings without a warning: below it, most other readings give another role."""
SHOWN = 3
ROLES = ("near", "far")
TERSE = {
    "rest": "the rest of its source",
    "below_parent_of": "at or below a parent of an ID class",
    "not below_parent_of": "at or below no parent of an ID class",
    "listed": "listed",
}
"""Operator of a rule -> its words in a line."""


@dataclass(frozen=True)
class RoleVerdict(Jsonable):
    """The near or the far classes of a benchmark.

    Attributes
    ----------
    classes : number of classes.
    images : number of their test images; None if it is not known.
    rules : phrases for the rules that decide the role, one for each of its sets.
    read : number of classes to which another reading of WordNet applies; None if the readings were left out.
    share : share of the readings that give a class the same role, the mean over these classes.
    changed : ids of the classes to which a reading gives another role, those with the least share first.
    reason : reason why no reading applies; empty if any does.
    changed_names : first names of the classes of ``changed``.
    """

    omitted: ClassVar[tuple[str, ...]] = ("changed_names",)

    role: str
    classes: int
    images: int | None
    rules: tuple[str, ...]
    read: int | None
    share: float | None
    changed: tuple[str, ...]
    reason: str
    changed_names: tuple[str, ...]


@dataclass(frozen=True)
class VerdictLine:
    """A line of a verdict; ``warning`` : whether its value is beyond the threshold for a warning."""

    text: str
    warning: bool = False

    def __str__(self) -> str:
        return f"warning: {self.text}" if self.warning else self.text


@dataclass(frozen=True)
class BenchmarkVerdict(Jsonable):
    """The verdict on a new benchmark.

    Attributes
    ----------
    roles : near and far, where the benchmark has them.
    siblings : (far class, ID class) ids, where the far class is below a parent of the ID class; examples.
    sibling_count : number of far classes with such an ID class, which no rule counts as a leak.
    power : sentence on the smallest difference that the benchmark can show, None if it is not known.
    lines : at most eight lines on all of these.
    readings : the roles of the classes under other readings, None if they were left out.
    """

    omitted: ClassVar[tuple[str, ...]] = ("readings",)

    roles: tuple[RoleVerdict, ...]
    siblings: tuple[tuple[str, str], ...]
    sibling_count: int
    power: str | None
    lines: tuple[VerdictLine, ...]
    readings: Robust | None = None


def judge_benchmark(recipe: Recipe, manifest: Manifest, readings: Robust | None = None) -> BenchmarkVerdict:
    """Return the verdict on a benchmark that a recipe built, under its own hierarchy.

    Parameters
    ----------
    readings : the roles under other readings if they are known; by default those that need no other WordNet
        (`quick_roles`), left out if there are too many classes.
    """
    if readings is None:
        readings = quick_roles(recipe)
    rows = manifest.classes.to_pylist()
    roles = tuple(_role(role, recipe, manifest, rows, readings) for role in ROLES)
    roles = tuple(role for role in roles if role.classes)
    siblings, sibling_count = _siblings(recipe, manifest)
    shown = power(manifest)
    lines = [VerdictLine(_size(role), role.classes < FEW_CLUSTERS) for role in roles]
    lines += [_in_other_readings(role) for role in roles]
    if siblings:
        names = {(row["source"], row["class_id"]): _short(row["name"]) for row in rows}
        pairs = [f"{names[far]} ({names[known]})" for far, known in siblings]
        far = next(role.classes for role in roles if role.role == "far")
        counts = f"{sibling_count:,} of {counted(far, 'far class')}"
        pairs_shown = listed(pairs, SHOWN)
        lines.append(VerdictLine(f"{counts} below a parent of an ID class, no leak: {pairs_shown}"))
    sentence = shown.sentence()
    if sentence is not None:
        lines.append(VerdictLine(sentence, not shown.is_shown))
    questions = [*_boundary(rows), *_pretrained(recipe)]
    lines += [VerdictLine(f"a reviewer will ask: {question}") for question in questions]
    ids = tuple((far[1], known[1]) for far, known in siblings)
    return BenchmarkVerdict(roles, ids, sibling_count, sentence, tuple(lines), readings)


def _role(
    role: str, recipe: Recipe, manifest: Manifest, rows: Sequence[dict[str, Any]], readings: Robust | None
) -> RoleVerdict:
    keys = {(row["source"], row["class_id"]) for row in rows if row["role"] == role}
    tests = [row for row in manifest.groups if row.role == role and row.split == "test"]
    counts = [row.expected if row.actual is None else row.actual for row in tests]
    classes = [c for c in (readings.classes if readings else ()) if (c.source, c.class_id) in keys]
    read = [(c.robust, c.class_id, c.name) for c in classes if c.robust is not None]
    changed = sorted(item for item in read if item[0] < 1)
    return RoleVerdict(
        role=role,
        classes=len(keys),
        images=None if None in counts else sum(filter(None, counts)),
        rules=tuple(dict.fromkeys(_decider(g.classes) for g in recipe.group if g.role == role)),
        read=None if readings is None else len(read),
        share=sum(share for share, _, _ in read) / len(read) if read else None,
        changed=tuple(class_id for _, class_id, _ in changed),
        reason="" if read else next((c.why for c in classes), ""),
        changed_names=tuple(_short(name) for _, _, name in changed),
    )


def _short(name: str) -> str:
    return name.partition(", ")[0]


def _decider(rule: Expression) -> str:
    """Return a phrase for the condition of a rule, without the exclusion of relatives of ID classes."""
    draw = getattr(rule, "draw", None)
    if draw is not None:
        return f"{draw:,} drawn, {_decider(rule.model_copy(update={'draw': None}))}"
    parts = [rule]
    if rule.operator == "all":
        parts = [part for part in rule.value if part.operator != "not" or part.value.operator != "overlaps"]
    (part, *more) = parts
    if more or not part.operator:
        return rule_words(rule)
    if part.operator == "similarity":
        bound = part.value
        limit = f"< {bound.below:g}" if bound.above is None else f">= {bound.above:g}"
        return f"{bound.measure} {limit} to ID"
    key = f"not {part.value.operator}" if part.operator == "not" else part.operator
    return TERSE.get(key) or rule_words(part)


def _size(role: RoleVerdict) -> str:
    images = "images not counted" if role.images is None else counted(role.images, "test image")
    few = f" (fewer than {FEW_CLUSTERS})" if role.classes < FEW_CLUSTERS else ""
    return f"{role.role}: {counted(role.classes, 'class')}{few}, {images}; {' or '.join(role.rules)}"


def _in_other_readings(role: RoleVerdict) -> VerdictLine:
    subject = f"{role.role} in other readings"
    if role.read is None:
        return VerdictLine(f"{subject}: left out, too many classes; see `wordnet-splits audit robust`")
    if role.share is None:
        return VerdictLine(f"{subject}: none applies ({role.reason})")
    changed = f"{len(role.changed):,} of {counted(role.read, 'class')} change role"
    shown = f": {listed(role.changed_names, SHOWN)}" if role.changed else ""
    return VerdictLine(f"{subject}: {role.share:.2f} agree; {changed}{shown}", role.share < LEAST_SHARE)


def _siblings(recipe: Recipe, manifest: Manifest) -> tuple[list[tuple[Key, Key]], int]:
    """Return examples of far classes below a parent of an ID class, each with it, and their number."""
    groups = {f"group:{group.name}": group for group in recipe.group}
    pairs, count = list[tuple[Key, Key]](), 0
    for leak in manifest.data.leaks:
        a, b = groups.get(leak.a), groups.get(leak.b)
        if leak.kind == "sibling" and a is not None and b is not None and {a.role, b.role} == {"far", "id"}:
            keys = [((a.source, first), (b.source, second)) for first, second in leak.examples]
            pairs += keys if a.role == "far" else [(y, x) for x, y in keys]
            count += leak.count
    return pairs, count


def _boundary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the question about the farthest near and the nearest far class."""
    scored = [row for row in rows if row["mean"] is not None]
    near, far = ([row for row in scored if row["role"] == role] for role in ROLES)
    if near and far:
        last, first = (pick(of, key=lambda row: row["mean"]) for pick, of in ((min, near), (max, far)))
        yield (
            f"why is {last['name']} near (mean {last['mean']:.3f}) and {first['name']} far "
            f"({first['mean']:.3f})?"
        )


def _pretrained(recipe: Recipe) -> Iterator[str]:
    if all("train" not in group.images for group in recipe.groups_with_role("id")):
        yield "did the model see the near or far classes in pretraining?"
