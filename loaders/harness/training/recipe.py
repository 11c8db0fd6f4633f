"""Training recipes: validated TOML files that list their differences from the paper.

Shipped recipes are in ``recipes/``; a path to a TOML file is accepted too. ``extends`` names a recipe or file
whose keys are replaced one by one; that one may extend another.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from wordnet_splits.base.errors import DataError, RecipeError, unknown
from wordnet_splits.base.names import counted
from wordnet_splits.base.text_formats import parse_toml, read_toml
from wordnet_splits.base.untrusted import require_trusted_name

from ..data.parameters import parse_named
from .choices import AUGMENTATIONS, NETWORKS, UPDATE_RULES, Schedule, Steps, named_code

if TYPE_CHECKING:
    from .methods import Method

VARIANTS = ("short", "imagenet", "imagenet1k")
"""Recipes ``openood-VARIANT`` that every method can be trained with."""
LONGEST_NAME = 64
OF_THE_METHOD = ("method", "paper", "negatives_per_known", "select", "differs")
"""Keys of a recipe that its variants keep."""
OFTEN_UNSET = ("images", "ema", "accumulate", "trial", "trained_layers", "resize", "seed")
"""Keys that are left out of a model's record where they are None."""


class MethodChoice(BaseModel):
    """A training method, a name in `training.methods` or ``MODULE:NAME``, and its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """All fields except the name."""
        return dict(self.model_extra or {})


class OptimizerChoice(BaseModel):
    """An update rule of `choices.UPDATE_RULES`, its rate, and its other settings by the rule's own names."""

    model_config = ConfigDict(extra="allow", frozen=True)
    rule: str
    lr: float = Field(gt=0)

    @property
    def settings(self) -> dict[str, Any]:
        """All fields except the rule."""
        return {"lr": self.lr, **(self.model_extra or {})}

    @model_validator(mode="after")
    def _known(self) -> Self:
        _one_of("update rule", self.rule, UPDATE_RULES)
        return self


class Trial(BaseModel):
    """Limits of a trial, None where the recipe's own holds: steps in an epoch, and images in a batch."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    steps: int | None = Field(default=None, ge=1)
    batch: int | None = Field(default=None, ge=1)


class Resizing(BaseModel):
    """Geometry of images: the shorter side resized to ``short``, then the central square ``side`` cut."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    short: int = Field(ge=1, le=1024)
    side: int = Field(ge=1, le=1024)

    def geometry(self, margin: int = 0) -> str:
        """Return its name in `transforms.geometry`, with some pixels more on each side."""
        return f"resize-{self.short}-crop-{self.side + 2 * margin}"


class TrainingRecipe(BaseModel):
    """How a network is trained.

    Attributes
    ----------
    name, title, paper : name, title, and key of the paper that the recipe reproduces, None without a paper.
    network : the default network.
    optimizer : one or several optimizers by name; each has its own runs.
    method : the training method; `build_method` makes it.
    negatives_per_known : size of the batch of outliers relative to the batch of ID images, for methods with
        separate outliers (``outliers="beside"``).
    select : the epoch to keep: the last, or the epoch with the least validation loss or the greatest gamma.
    patience : number of epochs without improvement of the ``select`` criterion before training stops.
    start : weights to start from: a recipe whose model is trained further, or others (`starting.open_start`);
        None and ``random`` for new weights.
    trained_layers : names of the layers below the classifier that are trained, None for all.
    runs : number of seeds in the paper.
    differs : differences from the paper, one sentence each.
    shortened : whether `with_epochs` changed the number of epochs.
    images : how many of the ID train images are trained on (`with_images`), None for all.
    ema : decay per step of the moving average of the weights that is validated and kept, None without.
    accumulate : number of parts of a batch whose gradients are added up before a step, None for 1.
    trial : limits of a trial (`as_trial`), None for the recipe's own run.
    resize : geometry of the images, in training and evaluation; None for the benchmark's.
    seed : seed of the paper; None for 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    version: Literal[1] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str
    paper: str | None = None
    network: str
    method: MethodChoice
    optimizer: dict[str, OptimizerChoice] = Field(min_length=1)
    schedule: Schedule
    augment: str
    epochs: int = Field(ge=1, le=10_000)
    batch: int = Field(ge=1)
    negatives_per_known: int = Field(default=1, ge=1)
    select: Literal["last", "val-loss", "gamma"]
    patience: int | None = Field(default=None, ge=1)
    start: str | None = None
    trained_layers: tuple[str, ...] | None = Field(default=None, min_length=1)
    runs: int = Field(default=5, ge=1)
    differs: tuple[str, ...] = ()
    shortened: bool = False
    images: int | None = Field(default=None, ge=1)
    ema: float | None = Field(default=None, gt=0, lt=1)
    accumulate: int | None = Field(default=None, ge=2)
    trial: Trial | None = None
    resize: Resizing | None = None
    seed: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if ":" not in self.network:
            _one_of("network", self.network, NETWORKS)
        _one_of("augmentation", self.augment, AUGMENTATIONS)
        if self.patience is not None and self.select == "last":
            raise ValueError("patience needs select = 'val-loss' or 'gamma'")
        if self.resize and self.resize.side > self.resize.short:
            raise ValueError("resize: the side must not be greater than the shorter side of the image")
        if self.augment == "crop-flip" and not self.margin:
            raise ValueError("augment = 'crop-flip' needs resize = { short = N, side = M } with M < N")
        return self

    @property
    def margin(self) -> int:
        """Pixels on each side of a train image by which ``crop-flip`` moves its window; 0 for others."""
        if self.resize is None or self.augment != "crop-flip":
            return 0
        return (self.resize.short - self.resize.side) // 2

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON-serialisable data for checkpoints.

        Some options are included only if set, so that earlier models still match their recipe.
        """
        unset = {name for name in OFTEN_UNSET if getattr(self, name) is None}
        return self.model_dump(mode="json", by_alias=True, exclude=unset)

    def build_method(self, parameters: Mapping[str, Any] | None = None) -> Method:
        """Return the training method, with other parameters if given; this imports its code, and torch."""
        from .methods.registry import get_method

        parameters = parameters or self.method.parameters
        return get_method(self.method.name, parameters, where=f"training recipe {self.name}")

    def with_method(self, method: str | Method) -> TrainingRecipe:
        """Return the recipe with another method: ``NAME[parameter=value]``, ``MODULE:NAME``, or an instance.

        Its name is appended to the recipe's name, and the change is noted in ``differs``. Of the recipe's own
        method, the parameters that are not given are kept.
        """
        if not isinstance(method, str):
            from .methods.registry import with_instance

            return with_instance(self, method)
        name, parameters = parse_named(method, where="--method")
        if name == self.method.name and not parameters:
            return self
        kept = self.method.parameters if name == self.method.name else {}
        place = "other parameters as in the recipe" if kept else f"in place of {self.method.name}"
        return self.with_note(method, f"method {method} {place}", method={"name": name, **kept, **parameters})

    def with_note(self, addition: str, note: str, **changes: Any) -> TrainingRecipe:
        """Return the recipe with an addition to its name, a note in ``differs``, and other values of keys.

        A digest takes the place of the end of a long name.
        """
        signed = re.sub(r"(?<=[=,])-(?=[.\d])", "minus", addition.lower())  # -23 and 23 have different names
        slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<!\d)\.(?=\d)", "0.", signed)).strip("-")
        name = f"{self.name}-{slug}"
        if len(name) > LONGEST_NAME:
            name = f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self._changed({"name": name, "differs": (*self.differs, note), **changes})

    def with_epochs(self, epochs: int) -> TrainingRecipe:
        """Return the recipe with another number of epochs and scaled milestones, noted in ``differs``."""
        if epochs == self.epochs:
            return self
        note = f"{counted(epochs, 'epoch')} in place of {self.epochs}"
        schedule = self.schedule
        if isinstance(schedule, Steps):
            own, schedule = schedule, schedule.scaled(self.epochs, epochs)
            before, after = (" and ".join(map(str, steps.milestones)) for steps in (own, schedule))
            note += f", the rate's steps at {after} in place of {before}"
        changed = {
            "epochs": epochs,
            "schedule": schedule,
            "differs": (*self.differs, note),
            "shortened": True,
        }
        return self._changed(changed)

    def with_images(self, images: int) -> TrainingRecipe:
        """Return the recipe for part of the ID train images, equally many per class, noted in ``differs``."""
        note = f"{images:,} of the ID train images, equally many of each class, by the benchmark's own draw"
        return self._changed({"images": images, "differs": (*self.differs, note)})

    def as_trial(self, steps: int | None, batch: int | None) -> TrainingRecipe:
        """Return the recipe with few steps in an epoch, or small batches, noted in ``differs``.

        A trial with steps is also validated on ``steps`` batches of images alone.
        """
        notes = [f"{counted(steps, 'step')} in an epoch, validated on as many batches"] if steps else []
        notes += [f"batches of {batch} in place of {self.batch}"] if batch is not None else []
        changed = {
            "trial": {"steps": steps, "batch": batch},
            "batch": self.batch if batch is None else batch,
            "differs": (*self.differs, f"a trial, not the recipe's run: {', '.join(notes)}"),
        }
        return self._changed(changed)

    def swept(self, values: Mapping[str, Sequence[Any]]) -> list[TrainingRecipe]:
        """Return the recipe with every combination of values of parameters of its method, named by them.

        Raises
        ------
        UnknownNameError : no such parameter. DataError : a value of the wrong type, or one given twice.
        """
        recipes: dict[str, TrainingRecipe] = {}
        for row in product(*values.values()):
            chosen = {**self.method.parameters, **dict(zip(values, row, strict=True))}
            method = self.build_method(chosen)
            chosen |= {name: getattr(method, name) for name in values}
            texts = [f"{name} {chosen[name]}" for name in values]
            note = f"{self.method.name} with {' and '.join(texts)}"
            addition = " ".join(texts).replace("-", "minus")
            recipe = self.with_note(addition, note, method={"name": self.method.name, **chosen})
            if recipe.name in recipes:
                raise DataError(f"{' and '.join(texts)} is given twice", where="sweep")
            recipes[recipe.name] = recipe
        if not values or not recipes:
            raise DataError("no value is given", where="sweep", hint="as in weight=0.1,1")
        return list(recipes.values())

    def _changed(self, values: dict[str, Any]) -> TrainingRecipe:
        try:
            return TrainingRecipe.model_validate({**dict(self), **values})
        except ValidationError as error:
            raise _explain(error, f"training recipe {self.name}") from None


def _one_of(kind: str, name: str, names: Any) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, list(names), n=2, cutoff=0.5)
        meant = " or ".join(map(repr, near or names)) or "none"
        raise ValueError(f"unknown {kind} {name!r}; {'did you mean' if near else 'known:'} {meant}")


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped recipes, sorted."""
    folder = files(__package__) / "recipes"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_recipe(name: str | Path, *, trust_model: bool = False) -> TrainingRecipe:
    """Return a recipe by its shipped name or by the path of a TOML file, or a variant: ``NAME/VARIANT``.

    If ``cider`` extends ``openood-cifar``, then ``cider/short`` has the method of ``cider`` and the other
    keys of ``openood-short``; the keys of its table ``[variants.short]`` replace them, but for ``differs``,
    which are added. A recipe that starts from another starts from the variant of that one.

    Raises
    ------
    UnknownNameError : no such recipe. RecipeError : malformed; names the file and the key.
    UnsafeDataError : its method or network is ``MODULE:NAME``, without ``trust_model``.
    """
    data, where = _read_extended(str(name)), f"training recipe {name}"
    data.pop("variants", None)
    try:
        recipe = TrainingRecipe.model_validate(data)
    except ValidationError as error:
        raise _explain(error, where) from None
    for code in named_code(recipe.network, recipe.method.name):
        require_trusted_name(code, trusted=trust_model, where=where)
    return recipe


def _read_extended(name: str, within: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the keys of a recipe, including keys from the recipes that it extends."""
    if name in within:
        raise RecipeError(
            f"recipes extend each other in a circle: {' -> '.join((*within, name))}",
            where=f"training recipe {within[0]}",
            hint="extend a recipe that does not lead back",
        )
    path, slash, variant = name.rpartition("/")
    if slash and variant in VARIANTS:
        data = _read_extended(path, (*within, name))
        variants = data.get("variants", {})
        changes = dict(variants.get(variant, {}))
        if variant == "imagenet1k" and "method" in variants.get("imagenet", {}):
            changes.setdefault("method", variants["imagenet"]["method"])
        base = _read_extended(f"openood-{variant}", (*within, name))
        method = {key: data[key] for key in OF_THE_METHOD if key in data}
        if "start" in data:
            method["start"] = _start_of_variant(data["start"], variant, base)
        merged = {**base, **method, "name": f"{data['name']}-{variant}", **changes}
        merged["differs"] = [d for table in (base, data, changes) for d in table.get("differs", ())]
        merged["title"] = f"{data['title']}, with the settings of {base['name']}"
    else:
        merged = _read(name)
        if base_name := merged.pop("extends", None):
            merged = {**_read_extended(str(base_name), (*within, name)), **merged}
    return merged


def _start_of_variant(start: str, variant: str, base: dict[str, Any]) -> str:
    """Return the weights that a variant starts from: a variant of the recipe's start, else the same ones."""
    if start == "openood-cifar":
        return str(base.get("start", base["name"]))
    return f"{start}-{variant}" if start in recipe_names() else start


def _read(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return read_toml(Path(name), error=RecipeError)
    if name not in recipe_names():
        raise unknown("training recipe", name, recipe_names())
    text = (files(__package__) / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_toml(text, where=name, error=RecipeError)


def _explain(error: ValidationError, where: str) -> RecipeError:
    """Turn the first of pydantic's problems into one error with the key in question."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        keys = [field.alias or name for name, field in TrainingRecipe.model_fields.items()]
        near = difflib.get_close_matches(key, keys, n=2, cutoff=0.5)
        return RecipeError(f"unknown key {key!r}", where=where, near=near, hint="correct the recipe")
    if problem["type"] == "missing":
        return RecipeError(f"the key {key!r} is missing", where=where, hint="add it to the training recipe")
    message = problem["msg"].removeprefix("Value error, ")
    return RecipeError(f"{key}: {message}" if key else message, where=where, hint="correct the recipe")


def series_of(recipe: str, network: str) -> str:
    """Return the series of an unshortened recipe with a single optimizer, e.g. ``mos-timm-resnet18``."""
    return "-".join((recipe, re.sub(r"[^\w.-]+", "-", network)))


@dataclass(frozen=True)
class Run:
    """One model to train: recipe, network, one of the recipe's optimizers, seed."""

    recipe: TrainingRecipe
    network: str
    optimizer: str
    seed: int

    @property
    def series(self) -> str:
        """Name that all seeds of a model share, e.g. ``kim-cifar-resnet20-e20-n5000``."""
        recipe = self.recipe
        optimizer = f"-{self.optimizer}" if len(recipe.optimizer) > 1 else ""
        epochs = f"-e{recipe.epochs}" if recipe.shortened else ""
        images = f"-n{recipe.images}" if recipe.images else ""
        trial = f"-trial-{recipe.trial.steps or 'all'}x{recipe.batch}" if recipe.trial else ""
        return f"{series_of(recipe.name, self.network)}{optimizer}{epochs}{images}{trial}"

    @property
    def name(self) -> str:
        """Name of the run and of its folder."""
        return f"{self.series}-s{self.seed}"
