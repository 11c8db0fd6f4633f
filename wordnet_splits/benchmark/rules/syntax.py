"""The syntax of ``classes = { ... }`` in a recipe: operands, operators, draws.

An inline table holds a single operator (``all``, ``any`` and ``not`` hold further tables). ``draw`` and
``within`` go next to the outermost operator and apply last. `rules.operators` documents the operators.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model, model_validator

from wordnet_splits.benchmark.rules.context import KeywordOverlap, Operand, RuleTable
from wordnet_splits.benchmark.rules.registry import OPERATORS

MOST_ALTERNATIVES = 1_000
"""Tables in one ``all`` or ``any``."""


if TYPE_CHECKING:
    OperatorFields = RuleTable
else:
    OperatorFields = create_model(
        "OperatorFields",
        __base__=RuleTable,
        __module__=__name__,
        **{
            name: (operator.value | None, Field(default=None, description=operator.meaning))
            for name, operator in OPERATORS.entries().items()
        },
    )


class Expression(OperatorFields):
    """One operator over classes, true or false of each.

    Attributes
    ----------
    senses : with ``overlaps``: ``any`` noun synset of a class's name, or the synsets of its ``catalog``.
    relation : with ``overlaps``: the relations of a class to the operand's that count; ``kin`` counts the
        relations of `thresholds`, which distinguish a class from a synset wider than its name.
    """

    senses: Literal["any", "catalog"] | None = None
    relation: Literal["equal", "self-or-below", "self-or-above", "ancestry", "kin"] | None = None
    clear_of: KeywordOverlap | None = Field(
        default=None, description="neither keywords nor synsets come near"
    )
    all: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = Field(
        default=None, description="every table holds"
    )
    any: Annotated[tuple[Expression, ...], Field(max_length=MOST_ALTERNATIVES)] | None = Field(
        default=None, description="one table holds"
    )
    not_: Expression | None = Field(default=None, alias="not", description="the table does not hold")

    @model_validator(mode="after")
    def _one_operator(self) -> Expression:
        operators = [n for n, f in FIELDS.items() if getattr(self, f) is not None]
        if len(operators) > 1:
            raise ValueError(
                f"a table must have one operator, got {', '.join(operators)}: combine them with all, any, not"
            )
        if not operators and self._needs_operator():
            named = "; ".join(f"{name} ({meaning})" for name, meaning in MEANINGS.items())
            raise ValueError(f"no operator; operators: {named}")
        if self.all == () or self.any == ():
            raise ValueError(f"{operators[0]} must have at least one table")
        if "overlaps" not in operators and (self.senses or self.relation):
            raise ValueError("senses and relation go with overlaps")
        return self

    def _needs_operator(self) -> bool:
        return True

    @cached_property
    def operator(self) -> str:
        """The operator's key; empty in a rule that only draws."""
        return next((n for n, field in FIELDS.items() if getattr(self, field) is not None), "")

    @property
    def value(self) -> Any:
        """The value at the operator's key."""
        return getattr(self, FIELDS[self.operator]) if self.operator else None


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
            raise ValueError("draw needs an operator, such as rest = true, or within")
        return self

    def _needs_operator(self) -> bool:
        return self.draw is None


FIELDS = {
    field.alias or name: name
    for name, field in Expression.model_fields.items()
    if name not in ("senses", "relation")
}
"""Key of each operator and combination -> its field."""

MEANINGS = {name: str(Expression.model_fields[field].description) for name, field in FIELDS.items()}
"""Short description of the classes that each operator accepts, by key."""


def expand_clear_of(expression: Expression) -> Expression:
    """Return the relations that ``clear_of`` excludes, as an ``any`` expression."""
    operand: KeywordOverlap = expression.value
    relatives = {"overlaps": operand.with_, "relation": "ancestry"}
    parts = [relatives, {"below_parent_of": operand.with_}, {"keyword_overlap": operand}]
    return Expression.model_validate({"any": parts})


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
    """Return a rule as a line in the recipe's syntax, without the keys that the recipe leaves out."""
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
