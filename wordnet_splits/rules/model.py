"""The syntax of ``classes = { ... }`` in a recipe: operands, operators, draws.

One inline table holds one operator (``all``, ``any`` and ``not`` hold further tables); ``draw`` and
``within`` stand beside the outermost one and apply last.  What an operator means: see `rules.registry`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
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
    """The classes that an operator refers to: an earlier group, a source, one publisher's split of it
    (``split:SOURCE/SPLIT``), a published list, or given ids."""

    kind: Literal["group", "source", "split", "list", "ids"]
    name: str = ""
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return json.dumps(list(self.ids)) if self.kind == "ids" else f'"{self.kind}:{self.name}"'


def parse_operand(value: Any) -> Operand:
    """Return the operand that a text such as ``group:NAME``, one of `OPERANDS`, or an array stands for."""
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
            twice = next(v for v in value if list(value).count(v) > 1)
            raise ValueError(f"{twice!r} stands twice in the array")
        return Operand("ids", ids=tuple(value))
    named = ", ".join(f"{kind}:NAME" for kind in OPERANDS)
    raise ValueError(f"an operand is {named} or a non-empty array of class ids")


def operand_value(operand: Operand) -> str | list[str]:
    """Return an operand as it stands in a recipe."""
    return list(operand.ids) if operand.kind == "ids" else f"{operand.kind}:{operand.name}"


OperandField = Annotated[Operand, PlainValidator(parse_operand), PlainSerializer(operand_value)]
GivenSynsets = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""Wnids, names such as ``dog.n.01``, or nouns."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeywordOverlap(_Model):
    """True where a keyword of the class's name reaches a class of ``with``, or a relative of one.

    Attributes
    ----------
    with : an operand.
    nodes : ``subtree`` lets a keyword reach only synsets of the operand's classes and what lies above them.
    match : ``token``: a word of a lemma is enough; ``lemma``: the keyword is the lemma.
    qualifiers : whether what stands after ``/`` in a name (``church/outdoor``) makes keywords.
    compounds : ``split`` takes both parts of a compound, too (fishpond: fish, pond).
    """

    with_: OperandField = Field(alias="with")
    nodes: Literal["all", "subtree"] = "all"
    match: Literal["token", "lemma"] = "token"
    qualifiers: Literal["drop", "keep"] = "drop"
    compounds: Literal["whole", "split"] = "whole"


class SimilarityBound(_Model):
    """True where the nearest class of ``to`` is at least ``above``, or less than ``below``, alike.

    Attributes
    ----------
    to : an operand.
    measure : the measure of similarity.
    above : the least value; or
    below : the value that is not reached.
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
    half : which half.
    first : so many.
    every : the length of a stretch, of which are taken
    at : those at these places, counted from 0.
    """

    of: GivenSynsets
    half: Half | None = None
    first: Annotated[int, Field(ge=1, strict=True)] | None = None
    every: Annotated[int, Field(ge=1)] | None = None
    at: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Slice:
        ways = [way for way in (self.half, self.first, self.every) if way is not None]
        if len(ways) != 1 or (self.every is None) != (self.at is None):
            raise ValueError("give one of half, first, or every and at")
        if self.every is not None and self.at is not None and max(self.at) >= self.every:
            raise ValueError(f"at counts from 0 to {self.every - 1} when every is {self.every}")
        return self


class Siblings(_Model):
    """One half of each family, the classes of the same parents, in the order of their source.

    Attributes
    ----------
    half : which half.
    odd : which half the middle class of an odd family belongs to; ``alternate`` gives it to the first half in
        the first odd family, to the second in the next, and so on.
    """

    half: Half
    odd: Literal["first", "second", "alternate"] = "second"


def _plainly_true(value: object) -> object:
    if value is not True:  # 1 equals True
        raise ValueError("only `true` may stand here")
    return value


Yes = Annotated[Literal[True], BeforeValidator(_plainly_true)]
"""``true`` and nothing that equals it."""
MOST_ALTERNATIVES = 1_000
"""Tables in one ``all`` or ``any``."""


class Expression(_Model):
    """One operator over classes, true or false of each.

    Attributes
    ----------
    senses : with ``overlaps``: ``any`` noun synset of a class's name, or those of its catalog.
    relation : with ``overlaps``: what counts, of the class to the operand's.
    """

    listed: OperandField | None = None
    subtree: OperandField | None = None
    below_one: OperandField | None = None
    shares_parent_with: OperandField | None = None
    below_parent_of: OperandField | None = None
    overlaps: OperandField | None = None
    senses: Literal["any", "catalog"] | None = None
    relation: Literal["equal", "self-or-below", "self-or-above", "ancestry"] | None = None
    keyword_overlap: KeywordOverlap | None = None
    clear_of: KeywordOverlap | None = None
    shares_name_with: OperandField | None = None
    part_whole_with: OperandField | None = None
    gloss_mentions: OperandField | None = None
    similarity: SimilarityBound | None = None
    slice: Slice | None = None
    siblings: Siblings | None = None
    rest: Yes | None = None
    all: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = None
    any: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = None
    not_: Expression | None = Field(default=None, alias="not")

    @model_validator(mode="after")
    def _one_operator(self) -> Expression:
        given = self._operators()
        if len(given) > 1:
            raise ValueError(
                f"one operator per table, not {', '.join(given)}: combine them with all, any, not"
            )
        if not given and self._needs_operator():
            raise ValueError(f"no operator; {operators_in_words()}")
        if self.all == () or self.any == ():
            raise ValueError(f"{given[0]} = [] decides nothing: put at least one table into it")
        if self.overlaps is None and (self.senses or self.relation):
            raise ValueError("senses and relation go with overlaps")
        return self

    def _operators(self) -> list[str]:
        given = self.model_fields_set
        return [n for n, field in OPERATORS.items() if field in given and getattr(self, field) is not None]

    def _needs_operator(self) -> bool:
        return True

    def text(self) -> str:
        """Return the rule as one line in the recipe's syntax."""
        return rule_text(self)

    @property
    def operator(self) -> str:
        """Return the operator's key; empty in a rule that only draws."""
        return next(iter(self._operators()), "")

    @property
    def value(self) -> Any:
        """Return what stands at the operator's key."""
        operator = self.operator
        return getattr(self, OPERATORS[operator]) if operator else None


class ClassRule(Expression):
    """The whole of ``classes = { ... }``: an operator, a draw among the classes it accepts, or both.

    Attributes
    ----------
    draw : how many of the accepted classes to draw.
    within : a column of the catalog, such as ``superclass``: so many within each of its values.
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


MEANINGS = {
    "listed": "the classes named",
    "subtree": "at or below a synset",
    "below_one": "at or below exactly one synset",
    "shares_parent_with": "a direct hypernym in common",
    "below_parent_of": "at or below a direct hypernym",
    "overlaps": "equal, above or below",
    "keyword_overlap": "a keyword of the name reaches one or its kin",
    "clear_of": "neither keywords nor synsets come near",
    "shares_name_with": "a word of its synset is a name",
    "part_whole_with": "a part, member or substance, either way",
    "gloss_mentions": "a gloss names the other, either way",
    "similarity": "alike enough, or unlike enough",
    "slice": "a part of the sorted classes below a synset",
    "siblings": "one half of the classes of the same parents",
    "rest": "all that no earlier group took",
    "all": "every table holds",
    "any": "one table holds",
    "not": "the table does not hold",
}


def operators_in_words() -> str:
    """Return every operator with what it is true of, for errors."""
    return "operators: " + "; ".join(f"{name} ({MEANINGS[name]})" for name in OPERATORS)


def operands(rule: BaseModel) -> Iterator[Operand]:
    """Yield every operand that a rule names, at any depth."""
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
    """Return the class ids that a rule lists by themselves, where it takes them for that."""
    if rule.operator == "any":
        return {name for part in rule.value for name in ids_listed(part)}
    return set(rule.value.ids) if rule.operator == "listed" else set()


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a table of this model may hold, in the order of the syntax."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def rule_text(rule: BaseModel) -> str:
    """Return a rule as one line in the recipe's syntax, keys in the order given there, defaults left out."""
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
