"""The syntax of ``classes = { ... }`` in a recipe: operands, operators, draws.

One inline table holds one operator (``all``, ``any`` and ``not`` hold further tables); ``draw`` and
``within`` are beside the outermost operator and apply last. See `rules.operators` for what operators do.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

OPERANDS = ("group", "source", "split", "list")
Hierarchy = Literal["wordnet", "imagenet-tree"]
Half = Literal["first", "second"]
Measure = Literal[  # those of wordnet_splits.similarity.similarity.MEASURES, which a test compares
    "distance", "path", "lch", "lch_perl", "wup", "wup_wn", "wup_perl", "mean", "mean_nltk", "mean2"
]


@dataclass(frozen=True)
class Operand:
    """The classes that an operator refers to: those of an earlier group, a source, a publisher's split
    (``split:SOURCE/SPLIT``) or a published list, or an array of ids."""

    kind: Literal["group", "source", "split", "list", "ids"]
    name: str = ""
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return json.dumps(list(self.ids)) if self.kind == "ids" else f'"{self.kind}:{self.name}"'


def parse_operand(value: Any) -> Operand:
    """Return the operand of a text such as ``group:NAME``, one of `OPERANDS`, or of an array of ids."""
    if isinstance(value, Operand):
        return value
    if isinstance(value, str):
        kind, colon, name = value.partition(":")
        if colon and name and kind in OPERANDS:
            return Operand(kind, name)  # type: ignore[arg-type]  # one of OPERANDS, checked above
        near = difflib.get_close_matches(kind, OPERANDS, n=1)
        meant = f"; did you mean '{near[0]}:{name or 'NAME'}'?" if near else ""
        raise ValueError(
            f"{value!r} is not an operand: group:NAME, source:NAME, split:SOURCE/SPLIT, list:NAME or an array"
            f"{meant}"
        )
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        if len(set(value)) < len(value):
            repeated = next(v for v in value if list(value).count(v) > 1)
            raise ValueError(f"{repeated!r} occurs twice in the array")
        return Operand("ids", ids=tuple(value))
    forms = ", ".join(f"{kind}:NAME" for kind in OPERANDS)
    raise ValueError(f"an operand is {forms} or a non-empty array of class ids")


def operand_value(operand: Operand) -> str | list[str]:
    """Return an operand as the value of a key in a recipe."""
    return list(operand.ids) if operand.kind == "ids" else f"{operand.kind}:{operand.name}"


OperandField = Annotated[Operand, PlainValidator(parse_operand), PlainSerializer(operand_value)]
Synsets = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""Wnids, names such as ``dog.n.01``, or nouns."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeywordOverlap(_Model):
    """True where a keyword of the class's name reaches a class of ``with`` or one of its relatives.

    Attributes
    ----------
    with : an operand.
    nodes : ``subtree`` lets a keyword reach only synsets of the operand's classes and what lies above them.
    match : ``token``: a word of a lemma is enough; ``lemma``: the keyword is the lemma.
    qualifiers : whether the text after ``/`` in a name (``church/outdoor``) makes keywords.
    compounds : ``split`` adds both parts of a compound (fishpond: fish, pond).
    """

    with_: OperandField = Field(alias="with")
    nodes: Literal["all", "subtree"] = "all"
    match: Literal["token", "lemma"] = "token"
    qualifiers: Literal["drop", "keep"] = "drop"
    compounds: Literal["whole", "split"] = "whole"


class SimilarityBound(_Model):
    """True where the similarity to the nearest class of ``to`` is at least ``above``, or less than ``below``.

    Attributes
    ----------
    to : an operand.
    measure : the measure of similarity.
    above : the least value; or
    below : the limit that the value must not reach.
    """

    to: OperandField
    measure: Measure
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> SimilarityBound:
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above, below")
        return self


class Slice(_Model):
    """Part of the sorted classes strictly below each root: one half, the first n, or some of every n.

    Attributes
    ----------
    of : the roots: wnids, names such as ``dog.n.01``, or nouns.
    half : the half to take.
    first : the number of classes to take from the start.
    every : the length of a period of classes, with ``at``.
    at : the positions to take in every period, from 0.
    """

    of: Synsets
    half: Half | None = None
    first: Annotated[int, Field(ge=1, strict=True)] | None = None
    every: Annotated[int, Field(ge=1)] | None = None
    at: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Slice:
        forms = [form for form in (self.half, self.first, self.every) if form is not None]
        if len(forms) != 1 or (self.every is None) != (self.at is None):
            raise ValueError("give one of half, first, or every and at")
        if self.every is not None and self.at is not None and max(self.at) >= self.every:
            raise ValueError(f"at counts from 0 to {self.every - 1} when every is {self.every}")
        return self


class Siblings(_Model):
    """One half of each family, the classes of the same parents, in the order of their source.

    Attributes
    ----------
    half : the half to take.
    odd : the half of the middle class of an odd family; ``alternate`` gives it to the first half in the first
        odd family, to the second in the next, and so on.
    """

    half: Half
    odd: Literal["first", "second", "alternate"] = "second"


class HeldOut(_Model):
    """Classes drawn to be held out of ``of``, at most ``classes``; each keeps a relative that is not.

    Attributes
    ----------
    of : an operand: the classes that are divided.
    unit : ``subtrees`` holds out all classes below a node together, ``leaves`` single classes.
    classes : the greatest number of classes to hold out.
    largest : the greatest number of classes of one subtree.
    """

    of: OperandField
    unit: Literal["subtrees", "leaves"]
    classes: Annotated[int, Field(ge=1, strict=True)]
    largest: Annotated[int, Field(ge=2, strict=True)] = 10


def _plainly_true(value: object) -> object:
    if value is not True:  # 1 equals True
        raise ValueError("the only value is `true`")
    return value


Yes = Annotated[Literal[True], BeforeValidator(_plainly_true)]
"""``true``, not a value that equals it."""
MOST_ALTERNATIVES = 1_000
"""Tables in one ``all`` or ``any``."""


def _means(meaning: str, alias: str | None = None) -> Any:
    """Return the field of an operator, with its meaning in a few words for errors and pages."""
    return Field(default=None, alias=alias, description=meaning)


class Expression(_Model):
    """One operator over classes, true or false of each.

    Attributes
    ----------
    senses : with ``overlaps``: ``any`` noun synset of a class's name, or those of its catalog.
    relation : with ``overlaps``: the relations of a class to the operand's that count; ``kin`` counts the
        relations of `thresholds`, which distinguish a class from a synset wider than its name.
    """

    listed: OperandField | None = _means("the classes named")
    subtree: OperandField | None = _means("at or below a synset")
    below_one: OperandField | None = _means("at or below exactly one synset")
    shares_parent_with: OperandField | None = _means("a direct hypernym in common")
    below_parent_of: OperandField | None = _means("at or below a direct hypernym")
    overlaps: OperandField | None = _means("equal, above or below")
    senses: Literal["any", "catalog"] | None = None
    relation: Literal["equal", "self-or-below", "self-or-above", "ancestry", "kin"] | None = None
    keyword_overlap: KeywordOverlap | None = _means("a keyword of the name reaches one or its kin")
    clear_of: KeywordOverlap | None = _means("neither keywords nor synsets come near")
    shares_name_with: OperandField | None = _means("a word of its synset is a name")
    part_whole_with: OperandField | None = _means("a part, member or substance, either way")
    gloss_mentions: OperandField | None = _means("a gloss names the other, either way")
    similarity: SimilarityBound | None = _means("alike enough, or unlike enough")
    slice: Slice | None = _means("a part of the sorted classes below a synset")
    siblings: Siblings | None = _means("one half of the classes of the same parents")
    held_out: HeldOut | None = _means("drawn as subtrees or leaves whose relatives stay")
    rest: Yes | None = _means("all that no earlier group took")
    all: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = _means(
        "every table holds"
    )
    any: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = _means(
        "one table holds"
    )
    not_: Expression | None = _means("the table does not hold", alias="not")

    @model_validator(mode="after")
    def _one_operator(self) -> Expression:
        operators = [n for n, f in OPERATORS.items() if getattr(self, f) is not None]
        if len(operators) > 1:
            raise ValueError(
                f"one operator per table, not {', '.join(operators)}: combine them with all, any, not"
            )
        if not operators and self._needs_operator():
            raise ValueError(f"no operator; {operators_in_words()}")
        if self.all == () or self.any == ():
            raise ValueError(f"{operators[0]} = [] decides nothing: put at least one table into it")
        if self.overlaps is None and (self.senses or self.relation):
            raise ValueError("senses and relation go with overlaps")
        return self

    def _needs_operator(self) -> bool:
        return True

    def text(self) -> str:
        """Return the rule as one line in the recipe's syntax."""
        return rule_text(self)

    @cached_property
    def operator(self) -> str:
        """The operator's key; empty in a rule that only draws."""
        return next((n for n, field in OPERATORS.items() if getattr(self, field) is not None), "")

    @property
    def value(self) -> Any:
        """The value at the operator's key."""
        return getattr(self, OPERATORS[self.operator]) if self.operator else None


class ClassRule(Expression):
    """The whole of ``classes = { ... }``: an operator, a draw among the classes it accepts, or both.

    Attributes
    ----------
    draw : the number of accepted classes to draw.
    within : a column of the catalog, such as ``superclass``: that number for each of its values.
    """

    draw: Annotated[int, Field(ge=1, strict=True)] | None = None
    within: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _within_a_draw(self) -> ClassRule:
        if self.within is not None and self.draw is None:
            raise ValueError("within goes with draw: draw = n classes within each value of the column")
        if self.draw is not None and self.within is None and not self.operator:
            raise ValueError(
                "draw alone does not say from what: write rest = true beside it, or another operator"
            )
        return self

    def _needs_operator(self) -> bool:
        return self.draw is None


OPERATORS = {
    field.alias or name: name
    for name, field in Expression.model_fields.items()
    if name not in ("senses", "relation")
}
"""The field of each operator's key."""

MEANINGS = {name: str(Expression.model_fields[field].description) for name, field in OPERATORS.items()}
"""What each operator is true of, in a few words."""


def expand_clear_of(expression: Expression) -> Expression:
    """Return the relations that ``clear_of`` excludes, as an ``any`` expression."""
    operand: KeywordOverlap = expression.value
    return Expression.model_validate(
        {
            "any": [
                {"overlaps": operand.with_, "relation": "ancestry"},
                {"below_parent_of": operand.with_},
                {"keyword_overlap": operand},
            ]
        }
    )


def operators_in_words() -> str:
    """Return every operator with its meaning, for errors."""
    return "operators: " + "; ".join(f"{name} ({meaning})" for name, meaning in MEANINGS.items())


def operands(rule: BaseModel) -> Iterator[Operand]:
    """Yield every operand of a rule, at any depth."""
    for name in type(rule).model_fields:
        value = getattr(rule, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Operand):
                yield part
            elif isinstance(part, BaseModel):
                yield from operands(part)


def lists_used(rule: BaseModel) -> tuple[str, ...]:
    """Return the names of the published lists that a rule needs, sorted."""
    return tuple(sorted({operand.name for operand in operands(rule) if operand.kind == "list"}))


def ids_listed(rule: Expression) -> set[str]:
    """Return the class ids that a rule takes because an array lists them."""
    if rule.operator == "any":
        return {name for part in rule.value for name in ids_listed(part)}
    return set(rule.value.ids) if rule.operator == "listed" else set()


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a table of this model may hold, in the order of the syntax."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def rule_text(rule: BaseModel) -> str:
    """Return a rule as one line in the recipe's syntax, without the keys that the recipe leaves out."""
    pairs = []
    for name, field in type(rule).model_fields.items():
        value = getattr(rule, name)
        if name in rule.model_fields_set and value is not None:
            pairs.append(f"{field.alias or name} = {_value_text(value)}")
    return "{ " + ", ".join(pairs) + " }"


def _value_text(value: Any) -> str:
    if isinstance(value, BaseModel):
        return rule_text(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value_text, value)) + "]"
    return str(value) if isinstance(value, Operand) else json.dumps(value, ensure_ascii=False)
