"""Exported detectors that contradict themselves under a new checksum, and what changes after loading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file

from fix_resize.decode import UndecodableImageError
from loaders.harness import Results, evaluate, load_detector, load_model
from loaders.harness.deployment.detector_folder import ARRAYS, CALIBRATION, DESCRIPTION
from loaders.harness.models.transforms import to_uint8
from tests.loaders.harness.altering import alterations, altered, reseal
from tests.loaders.harness.deployment.test_shipped_detector import MODEL, network
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.text_formats import CHECKSUM
from wordnet_splits.base.untrusted import sha256_of

IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8))
FITTED = (
    "dice",
    "fdbd",
    "gram",
    "klm",
    "knn",
    "mahalanobis",
    "mdsens",
    "openmax",
    "react",
    "rmds",
    "she",
    "vim",
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of detectors, each by its name."""
    folder = tmp_path_factory.mktemp("exported")
    results: Results = evaluate(MODEL, "digits", [*FITTED, "msp"], store=folder / "store")
    for name in (*FITTED, "msp"):
        results.export_detector(name, false_alarms=0.1, store=folder / "store").write(folder / name)
    return folder


def changed(
    exported: Path,
    name: str,
    folder: Path,
    *,
    description: Callable[[dict[str, Any]], object] = lambda content: None,
    arrays: Callable[[dict[str, Any]], object] = lambda stored: None,
) -> Path:
    """Write a detector with another description and other arrays, and seal both."""
    stored = load_file(str(exported / name / ARRAYS))
    arrays(stored)
    folder.mkdir(exist_ok=True)
    save_file(stored, str(folder / ARRAYS))
    (folder / DESCRIPTION).write_bytes((exported / name / DESCRIPTION).read_bytes())

    def change(content: dict[str, Any]) -> None:
        content["arrays"] = sha256_of(folder / ARRAYS, largest=1 << 30)
        description(content)

    reseal(folder / DESCRIPTION, change)
    return folder


def calibrated(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["calibration"].update(values)


def columned(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["columns"].update(values)


def transformed(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["transform"]["spec"].update(values)


DESCRIPTIONS: dict[str, Callable[[dict[str, Any]], object]] = {
    "rank 0": calibrated(rank=0),
    "another rank": calibrated(rank=11),
    "another rate": calibrated(requested=0.2),
    "another guarantee": calibrated(false_alarms=0.001),
    "more images": calibrated(images=121),
    "no images": calibrated(images=0),
    "another threshold": calibrated(threshold=-0.5),
    "a threshold of no number": calibrated(threshold=float("nan")),
    "no columns": columned(columns=[]),
    "a column twice": columned(columns=[0, 1, 2, 3, 4, 4]),
    "a column beyond": columned(columns=[0, 1, 2, 3, 4, 6]),
    "columns without end": columned(width=10**15, restrict="full"),
    "fewer columns": columned(columns=[0, 1, 2, 3, 4]),
    "the background among the columns": columned(background=3),
    "a view that is none": lambda content: content.update(view="fix-0"),
    "a transform of no numbers": transformed(mean="x"),
    "a transform that divides by zero": transformed(std=[0.0, 0.0, 0.0]),
    "a transform of a list": transformed(evaluation=[1]),
    "a transform that names code": transformed(evaluation="os:getpid"),
    "a parameter that there is not": lambda content: content["params"].update(none=1),
    "a parameter that is absent": lambda content: content["params"].pop("percentile"),
    "a parameter that its name does not tell": lambda content: content["params"].update(percentile=80.0),
    "a name with another parameter": lambda content: content.update(detector="react[percentile=80]"),
    "no sets": calibrated(groups=[]),
    "a parameter out of range": lambda content: content["params"].update(percentile=1e9),
    "a class of another module": lambda content: content["state"].update({"class": "ThreadPoolExecutor"}),
    "a class of no state": lambda content: content["state"].update({"class": "ReAct", "fields": {}}),
    "an array that there is not": lambda c: c["state"]["fields"]["ascending"].update(array="elsewhere"),
    "no state": lambda content: content["state"].clear(),
    "a value that is a list": lambda c: c["state"]["fields"].update(
        ascending={"kind": "value", "value": [1]}
    ),
    "another detector": lambda content: content.update(name="nothing"),
    "a stray key": lambda content: content.update(extra=1),
}


def at(index: int, value: float) -> Callable[[dict[str, Any]], object]:
    def put(stored: dict[str, Any]) -> None:
        stored[CALIBRATION][index] = value

    return put


def recast(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], object]:
    return lambda stored: stored.update({name: np.ascontiguousarray(change(stored[name]))})


CONTENTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a calibration in another order": recast(CALIBRATION, lambda scores: scores[::-1]),
    "a calibration of NaN": at(-1, float("nan")),
    "a calibration of infinity": at(-1, float("inf")),
    "a state of infinity": recast("state.ascending", lambda array: array + np.inf),
    "a calibration of integers": recast(CALIBRATION, lambda scores: scores.astype(np.int64)),
    "a calibration of one more": recast(CALIBRATION, lambda scores: np.append(scores, scores[-1:])),
    "a calibration of two axes": recast(CALIBRATION, lambda scores: scores[:, None]),
    "another calibration score at the threshold": at(5, -1e9),
    "no calibration": lambda stored: stored.pop(CALIBRATION),
    "a state of NaN": recast("state.ascending", lambda array: array * np.nan),
    "a head of one class less": recast("state.head.weight", lambda weight: weight[:5]),
    "a bias for no class": recast("state.head.bias", lambda bias: bias[:0]),
    "a head of one axis": recast("state.head.weight", lambda weight: weight[0]),
    "other features of the examples": recast("examples/features", lambda features: features * 2),
    "other confidences of the examples": recast("examples", lambda scores: scores[::-1]),
    "fewer examples": lambda stored: stored.update(
        {name: stored[name][:8] for name in stored if name.startswith("examples")}
    ),
    "one example": recast("examples/features", lambda features: features[0, 0]),
    "no examples": lambda stored: [stored.pop(name) for name in [*stored] if name.startswith("examples")],
}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(pytest.param("description", change, id=name) for name, change in DESCRIPTIONS.items()),
        *(pytest.param("arrays", change, id=name) for name, change in CONTENTS.items()),
    ],
)
def test_a_detector_that_contradicts_itself_is_refused(
    kind: str, change: Callable[[dict[str, Any]], object], exported: Path, tmp_path: Path
) -> None:
    load_detector(changed(exported, "react", tmp_path / "sound"), MODEL)
    folder = changed(exported, "react", tmp_path / "changed", **{kind: change})
    with pytest.raises(SplitsError) as refused:
        load_detector(folder, MODEL)
    assert str(refused.value.where).startswith(str(folder))
    assert "\n" not in str(refused.value)


STATES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("she", "state", lambda means: means[:3]),
    ("she", "state", lambda means: np.roll(means, 1, axis=0)),
    ("mahalanobis", "state.means", lambda means: means[:3]),
    ("gram", "state.0.greatest", lambda greatest: greatest[:1]),
    ("klm", "state.log_mean", lambda means: means[:1]),
    ("fdbd", "state.near", lambda near: near[:1]),
    ("openmax", "state.tails.location", lambda location: location[:1]),
    ("knn", "state.features", lambda features: features[: len(features) // 2]),
    ("react", "state.ascending", lambda values: values[: len(values) // 2]),
    ("react", "state.head.weight", lambda weight: weight * 1.01),
    ("dice", "state.each", lambda each: each[:, ::-1]),
    ("vim", "state.origin", lambda origin: -origin),
)


@pytest.mark.parametrize(("name", "array", "change"), STATES, ids=lambda value: str(value)[:20])
def test_a_state_that_gives_other_confidences_is_refused(
    name: str, array: str, change: Callable[[Any], Any], exported: Path, tmp_path: Path
) -> None:
    folder = changed(exported, name, tmp_path / "changed", arrays=recast(array, change))
    with pytest.raises(DataError) as refused:
        load_detector(folder, MODEL)
    assert refused.value.where == str(folder)


def outcome(folder: Path) -> None:
    """Score an image; loading and scoring may end in one line."""
    line = ""
    try:
        score = load_detector(folder, MODEL)(IMAGE)
        assert np.isfinite(score.confidence)
        assert 0 < score.p_value <= 1
    except SplitsError as error:
        line = str(error)
    assert "\n" not in line


@pytest.mark.sampled("fuzz", one_in=12)
@pytest.mark.parametrize("name", FITTED)
def test_a_state_of_another_form_ends_in_a_line_or_a_score(name: str, exported: Path, tmp_path: Path) -> None:
    forms: dict[str, Callable[[Any], Any]] = {
        "emptied": lambda array: array[:0],
        "halved": lambda array: array[: len(array) // 2],
        "doubled": lambda array: np.concatenate([array, array]),
        "flat": lambda array: array.reshape(-1),
        "turned": lambda array: array.T,
        "with an axis": lambda array: array[None],
        "of integers": lambda array: array.astype(np.int8),
        "of truth": lambda array: array.astype(bool),
        "of halves": lambda array: array.astype(np.float16),
        "huge": lambda array: np.full_like(array, 1e30),
    }
    for array in load_file(str(exported / name / ARRAYS)):
        for form in forms.values():
            if array != CALIBRATION:
                outcome(changed(exported, name, tmp_path / "changed", arrays=recast(array, form)))


@pytest.mark.sampled("fuzz", one_in=12)
@pytest.mark.parametrize("name", FITTED)
def test_every_value_of_a_description_that_is_altered_ends_in_a_line_or_a_score(
    name: str, exported: Path, tmp_path: Path
) -> None:
    content = json.loads((exported / name / DESCRIPTION).read_text())
    content.pop(CHECKSUM)
    for _, path, new in alterations(content):
        other = altered(content, path, new)

        def change(document: dict[str, Any], other: dict[str, Any] = other) -> None:
            arrays = {"arrays": document["arrays"]} if "arrays" in other else {}
            document.clear()
            document.update(other | arrays)

        outcome(changed(exported, name, tmp_path / "changed", description=change))


CHANGES: dict[str, Callable[[Any], object]] = {
    "as an optimizer does": lambda weight: weight.mul_(0.5),
    "through data": lambda weight: weight.data.mul_(0.5),
    "one value through data": lambda weight: weight.data[0, :1].add_(0.25),
    "to zeros": torch.nn.init.zeros_,
    "other memory": lambda weight: setattr(weight, "data", torch.ones_like(weight)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_weights_that_change_after_loading_are_noticed(
    change: Callable[[Any], object], exported: Path, tmp_path: Path
) -> None:
    module = network()
    detector = load_detector(exported / "msp", module)
    model = load_model(module, device="cpu")
    before = detector(IMAGE)
    weight: Any = module[-1].weight
    with torch.no_grad():
        weight.mul_(1.0)
        assert detector(IMAGE) == before  # written, but not changed
        change(weight)
    with pytest.raises(DataError) as refused:
        detector(IMAGE)
    assert refused.value.where == detector.model.name
    with pytest.raises(DataError) as refused:
        evaluate(model, "digits", "msp", groups=["uniform"], store=tmp_path)
    assert refused.value.where == model.name


RAMP = np.arange(64).reshape(8, 8)


@pytest.mark.parametrize(
    ("image", "pixels"),
    [
        (Image.fromarray((RAMP * 1000).astype(np.uint16)), RAMP * 1000 >> 8),
        (Image.fromarray((RAMP * 1000).astype(np.int32)), RAMP * 1000 >> 8),
        (Image.fromarray((RAMP * 4).astype(np.int32)), RAMP * 4),
        (Image.fromarray((RAMP % 2).astype(bool)), RAMP % 2 * 255),
        (Image.fromarray((RAMP * 70_000).astype(np.int32)), None),
        (Image.fromarray((RAMP / 64).astype(np.float32)), None),
        (Image.fromarray((RAMP * 4).astype(np.float32)), None),
        (Image.new("HSV", (8, 8)), None),
        (Image.new("LAB", (8, 8)), None),
        (Image.new("RGBa", (8, 8)), None),
    ],
    ids=lambda value: getattr(value, "mode", ""),
)
def test_an_image_in_memory_follows_the_rules_for_files(
    image: Image.Image, pixels: Any, exported: Path
) -> None:
    detector = load_detector(exported / "msp", MODEL)
    if pixels is None:
        with pytest.raises(UndecodableImageError) as refused:
            detector(image)
        assert refused.value.reason == "mode"
        with pytest.raises(UndecodableImageError):
            to_uint8(image)
        return
    assert detector(image) == detector(pixels.astype(np.uint8))
    assert to_uint8(image).tolist() == [pixels.tolist()] * 3
