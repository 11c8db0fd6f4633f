"""What a step returns in place of a loss: refused in one line, in the first step of the training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from loaders.harness import audit_method, train_recipe
from loaders.harness.data.parameters import parameters
from loaders.harness.training.data import DeviceData
from loaders.harness.training.machine import choose_machine, reproducible
from loaders.harness.training.methods import Batch, Method, Network, Part, State, Term, declare
from loaders.harness.training.methods.classification import Softmax
from loaders.harness.training.methods.interface import Terms, cross_entropy
from loaders.harness.training.methods.registry import register_method
from loaders.harness.training.runs import plan_runs
from loaders.harness.training.trainer import Trainer
from tests.loaders.harness.training.methods.stand_ins import recipe_of, small_data
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.progress import Silent

CPU = choose_machine("cpu")
Values = Callable[[Tensor], Any]


def first_epoch(returned: Callable[[Tensor], Any], depends: Any = "image") -> dict[str, Any]:
    """Train one epoch with a step that returns something of the (n,) cross-entropies."""

    @dataclass(frozen=True)
    class Stated(Method):
        name: ClassVar[str] = "stated"
        parts = declare(cross_entropy=Part(depends=depends))

        def step(self, model: Network, batch: Batch, state: State) -> Terms:
            terms: Terms = returned(cross_entropy(model(batch.images)[1], batch.labels))
            return terms

    (run,) = plan_runs(recipe_of("softmax"))
    with reproducible(CPU.device):
        trainer = Trainer(run, DeviceData.from_data(small_data(), CPU.device), CPU, method=Stated())
        return trainer.train_epoch(0, Silent().task("", 1).__enter__())


WRONG: dict[str, Values] = {
    "complex": lambda z: {"cross_entropy": z + 0j},
    "complex number": lambda z: {"cross_entropy": z.mean() * 1j},
    "complex weight": lambda z: {"cross_entropy": Term(z, torch.tensor(1j))},  # type: ignore[arg-type]
    "weights": lambda z: {"cross_entropy": Term(z, torch.ones(3))},  # type: ignore[arg-type]
    "text as weight": lambda z: {"cross_entropy": Term(z, "1")},  # type: ignore[arg-type]
    "whole numbers": lambda z: {"cross_entropy": z.long()},
    "truth values": lambda z: {"cross_entropy": z > 0},
    "a number": lambda z: {"cross_entropy": float(z.mean())},
    "none": lambda z: {"cross_entropy": None},
    "a list": lambda z: {"cross_entropy": [*z]},
    "an array": lambda z: {"cross_entropy": z.detach().numpy()},
    "no mapping": lambda z: z,
    "no part": lambda z: {},
    "no gradient": lambda z: {"cross_entropy": z.detach()},
    "a column": lambda z: {"cross_entropy": z[:, None]},
    "no values": lambda z: {"cross_entropy": z[:0]},
    "three values": lambda z: {"cross_entropy": z[:3]},
    "all but one": lambda z: {"cross_entropy": z[1:]},
    "one more": lambda z: {"cross_entropy": torch.cat([z, z[:1]])},
    "NaN": lambda z: {"cross_entropy": z * float("nan")},
}
RIGHT: dict[str, tuple[Values, str]] = {
    "a value per image": (lambda z: {"cross_entropy": z}, "image"),
    "two views": (lambda z: {"cross_entropy": torch.cat([z, z])}, "image"),
    "the mean": (lambda z: {"cross_entropy": z.mean()}, "image"),
    "three of the batch": (lambda z: {"cross_entropy": z[:3]}, "batch"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_real_number_is_refused_by_the_name_of_the_method(case: str) -> None:
    with pytest.raises(DataError) as caught:
        first_epoch(WRONG[case])
    assert caught.value.where is not None
    assert caught.value.where.endswith("training method 'stated'")


@pytest.mark.parametrize("case", RIGHT)
def test_values_per_image_per_view_or_their_mean_are_a_loss(case: str) -> None:
    assert first_epoch(*RIGHT[case])["loss"] > 0


def test_values_of_outliers_alone_are_a_part() -> None:
    for name in ("outlier-exposure", "energy", "udg", "udg[purity=0.3]"):
        (run,) = plan_runs(recipe_of(name))
        with reproducible(CPU.device):
            trainer = Trainer(run, DeviceData.from_data(small_data(), CPU.device), CPU)
            assert trainer.train_epoch(0, Silent().task("", 1).__enter__())["loss"] > 0


def every_class() -> dict[str, type[Any]]:
    from loaders.harness.detectors.registry import DETECTORS
    from loaders.harness.training.methods.registry import METHODS

    detectors = {name: spec.implementation for name, spec in DETECTORS.registered.items() if spec.built_in}
    return {
        **METHODS.registered,
        **{name: item for name, item in detectors.items() if isinstance(item, type)},
    }


@pytest.mark.parametrize("name", every_class())
def test_a_class_built_with_a_parameter_that_it_lacks_names_those_it_has(name: str) -> None:
    cls = every_class()[name]
    with pytest.raises(UnknownNameError) as unknown:
        cls(level=0.3)
    assert unknown.value.where == cls.__name__
    with pytest.raises(DataError) as many:
        cls(*range(30))
    assert str(many.value.where).startswith(cls.__name__)


def test_a_users_method_is_refused_as_a_shipped_one_and_named_by_text(tmp_path: Any) -> None:
    @parameters
    class Flooding(Softmax):
        b: float = 0.1
        steps: int = 1
        on: bool = True

    for values, where in (
        ({"level": 0.3}, "Flooding"),
        ({"b": "x"}, "Flooding: b"),
        ({"b": None}, "Flooding: b"),
        ({"b": 1j}, "Flooding: b"),
        ({"b": True}, "Flooding: b"),
        ({"steps": 1.0}, "Flooding: steps"),
        ({"on": 1}, "Flooding: on"),
    ):
        with pytest.raises((DataError, UnknownNameError)) as caught:
            Flooding(**values)
        assert caught.value.where == where
    with pytest.raises(UnknownNameError) as first:  # of several, the same one in every process
        Flooding(**{"onn": True, **{f"stepz{number}": 1 for number in range(9)}})
    assert first.value.near == ("on",)
    assert Flooding(b=1, steps=2, on=False).b == 1
    for method, where in ((Flooding(b=0.3), "Flooding"), (Flooding, "--method"), (3, "--method")):
        with pytest.raises(DataError) as refused:
            train_recipe("digits-demo", "digits", tmp_path, method=method)  # type: ignore[arg-type]
        assert str(refused.value.where).endswith(where)
    with pytest.raises(DataError):
        audit_method(Flooding)  # type: ignore[arg-type]


def test_a_method_without_a_step_is_none() -> None:
    @dataclass(frozen=True)
    class Idle(Method):
        pass

    with pytest.raises(DataError) as caught:
        register_method("idle")(Idle)
    assert str(caught.value.where).endswith("Idle")
