"""Detector objects of pytorch-ood and postprocessors of OpenOOD's protocol, used as they are."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from loaders.harness.detectors import detector_from_object, parse_detectors
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.evaluation.scoring import confidence, fit
from loaders.harness.results.check import check_results
from tests.loaders.harness.detectors.separable import head_of, images
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnusableError
from wordnet_splits.metrics import auroc

TRAIN, KNOWN, UNKNOWN = images(400, seed=1), images(150, seed=3), images(150, seed=4, unknown=True)
HEAD = head_of()


class Base:
    """A postprocessor of OpenOOD's protocol: the greatest softmax, nothing to set up."""

    def setup(self, net: Any, id_loader_dict: Any, ood_loader_dict: Any) -> None:
        pass

    @torch.no_grad()
    def postprocess(self, net: Any, data: Any) -> tuple[Any, Any]:
        conf, pred = torch.softmax(net(data), dim=1).max(dim=1)
        return pred, conf

    def inference(self, net: Any, data_loader: Any, progress: bool = True) -> tuple[Any, Any, Any]:
        parts = [self.postprocess(net, batch["data"].cuda()) for batch in data_loader]
        pred, conf = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
        return pred, conf, np.full(len(pred), -1)


class EnergyPostprocessor(Base):
    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def postprocess(self, net: Any, data: Any) -> tuple[Any, Any]:
        output = net(data)
        return output.argmax(1), self.temperature * torch.logsumexp(output / self.temperature, dim=1)


class NearestPostprocessor(Base):
    """The distance to the 5th nearest training feature; a second `setup` does nothing, as OpenOOD's."""

    setup_flag = False

    def setup(self, net: Any, id_loader_dict: Any, ood_loader_dict: Any) -> None:
        if self.setup_flag:
            return
        net.eval()
        parts = []
        for batch in id_loader_dict["train"]:
            _, feature = net(batch["data"].cuda().float(), return_feature=True)
            assert len(batch["label"].cuda()) == len(feature)
            parts.append(functional.normalize(feature, dim=1).cpu())
        self.bank, self.setup_flag = torch.cat(parts), True

    def postprocess(self, net: Any, data: Any) -> tuple[Any, Any]:
        output, feature = net(data, return_feature=True)
        distances = torch.cdist(functional.normalize(feature, dim=1), self.bank)
        return output.argmax(1), -distances.kthvalue(5, dim=1).values


class ResidualPostprocessor(Base):
    """Minus the distance between the logits and those that the head gives: zero but for rounding."""

    def postprocess(self, net: Any, data: Any) -> tuple[Any, Any]:
        weight, bias = (torch.from_numpy(part) for part in net.get_fc())
        logits, feature = net(data, return_feature=True)
        assert torch.allclose(logits, feature @ weight.T + bias, atol=1e-3)
        return logits.argmax(1), logits.amax(1)


def confidences(detector: Any, data: Any = KNOWN) -> Any:
    configured = (
        detector_from_object(detector) if not isinstance(detector, str) else parse_detectors(detector)[0]
    )
    fits = bool(configured.spec.splits)
    return confidence(fit(configured, TRAIN if fits else None, HEAD), data)


@pytest.mark.parametrize(
    ("postprocessor", "ours"),
    [(Base(), "msp"), (EnergyPostprocessor(), "energy"), (EnergyPostprocessor(5.0), "energy[T=5]")],
)
def test_a_postprocessor_ranks_as_our_detector(postprocessor: Any, ours: str) -> None:
    theirs, expected = ([confidences(d, data) for data in (KNOWN, UNKNOWN)] for d in (postprocessor, ours))
    assert auroc(*theirs) == pytest.approx(auroc(*expected), abs=1e-6)
    assert auroc(*theirs) > 0.9  # conf is higher for ID


def test_a_postprocessor_is_set_up_on_train_and_stays_as_it_was() -> None:
    original = NearestPostprocessor()
    theirs = confidences(original)
    assert not original.setup_flag
    assert not hasattr(original, "bank")
    expected = confidences("knn[k=5]")
    assert np.argsort(theirs).tolist() == np.argsort(expected).tolist()
    again = confidences(original, UNKNOWN)  # another fit, as of another network
    assert auroc(theirs, again) > 0.9


def test_the_head_is_there_as_get_fc() -> None:
    assert confidences(ResidualPostprocessor()) == pytest.approx(confidences("mls"), rel=1e-5)
    configured = detector_from_object(ResidualPostprocessor())
    with raises(UnusableError, where="'openood.residual'"):
        confidence(fit(configured), KNOWN)


def test_inference_is_called_where_it_is_the_one_overridden() -> None:
    class Negated(Base):
        def inference(self, net: Any, data_loader: Any, progress: bool = True) -> tuple[Any, Any, Any]:
            pred, conf, label = super().inference(net, data_loader)
            return pred, -conf, label

    class Alone:
        def inference(self, net: Any, data_loader: Any) -> tuple[Any, Any, Any]:
            return Base().inference(net, data_loader)

    msp = confidences(Base())
    assert confidences(Negated()) == pytest.approx(-msp)
    assert confidences(Alone()) == pytest.approx(msp)


Postprocess = Callable[[Any, Any], Any]
REFUSED: dict[str, Postprocess] = {
    "odin": lambda net, data: net(data.requires_grad_()).max(1),
    "perturbed": lambda net, data: net(data + 0.1).max(1),
    "layers": lambda net, data: net(data, return_feature_list=True),
    "clipped": lambda net, data: net.forward_threshold(data, 1.0).max(1),
    "dropout": lambda net, data: net.train(),
    "wordless": lambda net, data: net(data).amax(1),
    "whole": lambda net, data: (net(data).argmax(1), net(data)),
    "undefined": lambda net, data: (net(data).argmax(1), net(data).amax(1) * float("nan")),
}


class Validated(Base):
    def setup(self, net: Any, id_loader_dict: Any, ood_loader_dict: Any) -> None:
        self.n = len(id_loader_dict["val"].dataset)


@pytest.mark.parametrize("name", [*REFUSED, "validated"])
def test_what_stored_outputs_cannot_give_is_refused(name: str) -> None:
    postprocessor = Validated()
    if name != "validated":
        methods = {"postprocess": lambda self, net, data: REFUSED[name](net, data)}
        postprocessor = type(name, (Base,), methods)()
    with raises(DataError, where=f"'openood.{name}'"):
        confidences(postprocessor)


def test_other_splits_are_named_on_the_object() -> None:
    class OnVal(Validated):
        fit_on = ("val",)
        name = "on-val"

    configured = detector_from_object(OnVal())
    assert (configured.label, configured.spec.splits) == ("openood.on-val", ("val",))
    state = fit(configured, TRAIN).state
    assert state[0].n == TRAIN.n
    OnVal.fit_on = ("validation",)
    with raises(DataError, where="OnVal", naming=("validation", "fit_on")):
        detector_from_object(OnVal())
    with raises(DataError, where="detectors"):
        detector_from_object(OnVal)


def test_setup_gets_a_loader_of_each_split_that_the_object_names() -> None:
    class Several(Base):
        fit_on = ("train", "val", "ood-val")
        sizes: tuple[int, ...] = ()

        def setup(self, net: Any, id_loader_dict: Any, ood_loader_dict: Any) -> None:
            loaders = (id_loader_dict["train"], id_loader_dict["val"], ood_loader_dict["val"])
            sizes = tuple(sum(len(batch["label"]) for batch in loader) for loader in loaders)
            assert sizes == tuple(len(loader.dataset) for loader in loaders) == (80, 60, 40)
            assert all(len(loader) == 1 for loader in loaders)
            Several.sizes = sizes

    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], [Several()])
    assert Several.sizes == (80, 60, 40)


def test_a_wrong_sign_cannot_be_detected() -> None:
    class Reversed(Base):  # as docs/coming-from.md says
        def postprocess(self, net: Any, data: Any) -> tuple[Any, Any]:
            pred, conf = super().postprocess(net, data)
            return pred, -conf

    assert auroc(confidences(Reversed()), confidences(Reversed(), UNKNOWN)) < 0.1


@pytest.fixture(scope="module")
def pytorch_ood() -> Any:
    return pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed")


def test_objects_of_pytorch_ood_score_as_called_directly(pytorch_ood: Any) -> None:
    weight, bias = torch.from_numpy(np.array(HEAD.weight)), torch.from_numpy(np.array(HEAD.bias))
    network = torch.nn.Linear(1, 1)  # never called, and not copied
    cases = {
        "msp": pytorch_ood.MaxSoftmax(network),
        "energy[T=2]": pytorch_ood.EnergyBased(network, t=2.0),
        "vim[dim=10]": pytorch_ood.ViM(network, d=10, w=weight, b=bias),
    }
    train, labels = torch.from_numpy(np.array(TRAIN["features"])), torch.from_numpy(np.array(TRAIN["labels"]))
    for ours, theirs in cases.items():
        scores = [confidences(theirs, data) for data in (KNOWN, UNKNOWN)]
        expected = [confidences(ours, data) for data in (KNOWN, UNKNOWN)]
        assert auroc(*scores) == pytest.approx(auroc(*expected), abs=1e-6)
        assert auroc(*scores) > 0.9
        if hasattr(theirs, "fit_features"):
            assert theirs.principal_subspace is None  # the object itself was not fitted
            theirs.fit_features(train, labels)
            direct = theirs.predict_features(torch.from_numpy(np.array(KNOWN["features"])))
        else:
            direct = theirs.predict_logits(torch.from_numpy(np.array(KNOWN["logits"])))
        assert scores[0] == pytest.approx(-direct.numpy(), rel=1e-4, abs=1e-6)


def test_labels_of_objects_of_pytorch_ood_have_their_values(pytorch_ood: Any) -> None:
    assert detector_from_object(pytorch_ood.EnergyBased(None)).label == "pytorch_ood.energybased"
    configured = detector_from_object(pytorch_ood.EnergyBased(None, t=3.0))
    assert (configured.label, dict(configured.params)) == ("pytorch_ood.energybased[t=3]", {"t": 3.0})
    with raises(DataError, where="pytorch_ood.detector"):
        detector_from_object(pytorch_ood.ODIN(torch.nn.Linear(2, 2)))


def test_results_name_foreign_detectors_and_recompute(pytorch_ood: Any, tmp_path: Path) -> None:
    from loaders.harness import report

    detectors = ["msp", pytorch_ood.MaxSoftmax(None), NearestPostprocessor()]
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET, 0), fake_run(OPEN_SET, 1)], detectors)
    msp, theirs = (
        results.values("auroc", group="far-a", detector=name)["value"].tolist()
        for name in ("msp", "pytorch_ood.maxsoftmax")
    )
    assert msp == pytest.approx(theirs, abs=1e-6)
    nearest = results.values("auroc", group="far-a", detector="openood.nearest")["value"].tolist()
    assert len(set(nearest)) == 2  # set up once for each network
    facts = {facts.detector: facts.foreign for facts in results.about.detectors if facts.foreign}
    assert {detector: (row.protocol, row.object) for detector, row in facts.items()} == {
        "pytorch_ood.maxsoftmax": ("pytorch-ood", "pytorch_ood.detector.softmax.MaxSoftmax"),
        "openood.nearest": ("OpenOOD", f"{__name__}.NearestPostprocessor"),
    }
    assert "Foreign: openood.nearest is" in str(results)
    page = report(results, tmp_path / "report.html").read_text("utf-8")
    assert "--detectors 'msp,pytorch_ood.detector.softmax:MaxSoftmax[t=1.0],openood.nearest" in html.unescape(
        page
    )
    assert "Objects in Python, for which MODULE:NAME of the object stands: openood.nearest." in page
    results.write(tmp_path)
    assert check_results(tmp_path, OPEN_SET).ok


def test_module_and_name_may_be_an_object(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from tests.loaders.harness.detectors.test_foreign_objects import Base\nmine = Base()\n"
    (tmp_path / "my_postprocessor.py").write_text(text)
    (configured,) = parse_detectors("my_postprocessor:mine")
    assert configured.label == "openood.base"
    with raises(SplitsError, where="--detectors"):
        parse_detectors("my_postprocessor:mine[t=2]")
