"""Operands of rules, and the values that several operators share."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator

Key = tuple[str, str]
"""A class: (source, class_id)."""
OPERANDS = ("group", "source", "split", "list")
Hierarchy = Literal["wordnet", "imagenet-tree"]
Half = Literal["first", "second"]
Measure = Literal[  # those of wordnet_splits.wordnet.similarity.pairs.MEASURES, which a test compares
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


class RuleTable(BaseModel):
    """Base of the tables in a rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KeywordOverlap(RuleTable):
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


def _plainly_true(value: object) -> object:
    if value is not True:  # 1 equals True
        raise ValueError("the only value is `true`")
    return value


Yes = Annotated[Literal[True], BeforeValidator(_plainly_true)]
"""``true``, not a value that equals it."""
