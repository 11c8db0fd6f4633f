"""TorchScript modules and exported programs: any batch size, logits alone, or features and logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from loaders.harness import evaluate, load_model
from tests.loaders.harness.models.networks import CLASSES, small_network
from tests.raising import raises
from wordnet_splits.base.errors import DataError

SIZES = (1, 3, 4, 5, 9)


def images(n: int, seed: int = 0) -> Any:
    return torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


class Pair(nn.Module):
    """Features and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = (
            nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.ReLU()),
            nn.Linear(5, CLASSES),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x)
        return features, self.head(features)


class Named(Pair):
    """Features and logits by name."""

    def forward(self, x: Tensor) -> Any:
        features, logits = super().forward(x)
        return {"logits": logits, "features": features}


def made(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return module.eval()


def exported(module: nn.Module, path: Path, batch: int, *, dynamic: Any = None) -> str:
    shapes = None if dynamic is None else ({0: dynamic},)
    torch.export.save(torch.export.export(module, (images(batch),), dynamic_shapes=shapes), path)
    return f"exported:{path}"


@pytest.mark.parametrize("kind", [small_network, Pair, Named])
@pytest.mark.parametrize("batch", [4, None])
def test_a_program_takes_batches_of_any_size(kind: Any, batch: int | None, tmp_path: Path) -> None:
    module = made(kind())
    dynamic = None if batch else torch.export.Dim("batch", min=2, max=4)
    spec = exported(module, tmp_path / "x.pt2", batch or 3, dynamic=dynamic)
    model = load_model(spec, device="cpu", trust_model=True)
    for n in SIZES:
        x = images(n)
        with torch.no_grad():
            outputs, due = model.forward(x), module(x)
        expected = {"features": None, "logits": due} if kind is small_network else due
        if kind is Pair:
            expected = dict(zip(("features", "logits"), due, strict=True))
        for output, name in zip(outputs, ("features", "logits"), strict=True):
            if expected[name] is None:
                assert output is None
            else:
                torch.testing.assert_close(output, expected[name])
    assert model.head is None


def sets() -> dict[str, Any]:
    known = TensorDataset(images(30, 1), torch.arange(30) % CLASSES)
    return {"id": known, "id/train": known, "near": TensorDataset(images(21, 2))}


@pytest.mark.parametrize("kind", [small_network, Pair])
def test_a_scripted_module_is_evaluated_as_the_module_is(kind: Any) -> None:
    module = made(kind())
    scripted = torch.jit.script(module)
    of_script, of_module = (
        evaluate(one, sets=sets(), detectors="msp,energy", batch_size=7) for one in (scripted, module)
    )
    for detector in ("msp", "energy"):
        found = of_script.values("auroc", group="near", detector=detector)["value"].tolist()
        assert found == pytest.approx(
            of_module.values("auroc", group="near", detector=detector)["value"].tolist(), abs=1e-6
        )
    assert evaluate(torch.jit.trace(module, images(2)), sets=sets(), detectors="msp")


def test_detectors_on_features_are_refused_where_there_are_logits_alone() -> None:
    scripted = torch.jit.script(made(small_network()))
    for given in ({"sets": sets()}, {"benchmark": "digits", "groups": ["uniform"]}):
        with raises(DataError, where="RecursiveScriptModule", naming="knn"):
            evaluate(scripted, detectors="knn", **given)
    left = evaluate(scripted, sets=sets(), detectors="msp,preset:openood")
    assert "knn" not in left.detectors
    assert any(note.startswith("knn is left out") or "knn is left out" in note for note in left.about.notes)
    assert (
        evaluate(scripted, "digits", "msp", groups=["uniform"])
        .values("auroc", group="uniform")["value"]
        .tolist()
    )
    pair = torch.jit.script(made(Pair()))
    assert evaluate(pair, sets=sets(), detectors="knn[k=3]").values("auroc", group="near")["value"].tolist()


class Triple(nn.Module):
    def forward(self, x: Any) -> Any:
        return x, x, x


def test_outputs_of_another_number_are_refused(tmp_path: Path) -> None:
    for program in (exported(Triple(), tmp_path / "x.pt2", 2), torch.jit.trace(Triple(), images(2))):
        with pytest.raises(DataError):
            load_model(program, device="cpu", trust_model=True).prepare(images(2))


class Auxiliary(nn.Module):
    """Two outputs for the classes, of which none goes into the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.aux = small_network(), nn.Sequential(nn.Flatten(), nn.Linear(192, CLASSES))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.inner(x), self.aux(x)


def test_of_two_outputs_for_the_classes_a_program_does_not_say_which_are_logits(tmp_path: Path) -> None:
    file = exported(Auxiliary(), tmp_path / "x.pt2", 2)
    for program in (file, torch.jit.trace(Auxiliary(), images(2))):
        with pytest.raises(DataError):
            load_model(program, device="cpu", trust_model=True).prepare(images(2))
