"""Exported detectors: they score as the results do, keep their guarantee, and refuse what is not theirs."""

from __future__ import annotations

import gc
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from fix_resize import resize
from fix_resize.spec import get_spec
from loaders import UnknownDetectionSet
from loaders.harness import Results, evaluate, load_detector
from loaders.harness.deployment import ShippedDetector, export_detector
from loaders.harness.deployment.detector_folder import ARRAYS, DESCRIPTION
from loaders.harness.deployment.export import _notes
from loaders.harness.deployment.image_table import score_files
from loaders.harness.detectors import DETECTORS, get_detector, list_detectors
from loaders.harness.models.transforms import Transform, evaluation_transform
from tests.raising import raises
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError, OutputError, SourceError, UnknownNameError
from wordnet_splits.base.text_formats import CHECKSUM

COMBINED, ON_OUTLIERS = "ensemble", ("opengan", "oodl")
NEEDS_MODEL = ("mcm", "neglabel", "output")  # a zero-shot model, or one of a training method
EXPORTED = sorted(set(DETECTORS) - {COMBINED, *ON_OUTLIERS, *NEEDS_MODEL})
HALVED = sorted(
    name
    for name in EXPORTED
    if "val" in DETECTORS[name].splits or hasattr(DETECTORS[name].implementation, "calibrate")
)
RANDOM = ("mc_dropout", "mutual_information")


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(96, 6),
    )


MODEL = network()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("activations")


@pytest.fixture(scope="module")
def results(store: Path) -> Results:
    return evaluate(MODEL, "digits", [*EXPORTED, "knn[k=5]"], store=store)


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    """The first ID test images, in the order of the results."""
    dataset = UnknownDetectionSet("digits", role="id")
    return [dataset[number][0] for number in range(24)]


@pytest.fixture(scope="module")
def knn(results: Results) -> ShippedDetector:
    return results.export_detector("knn", false_alarms=0.1)


@pytest.fixture
def folder(knn: ShippedDetector, tmp_path: Path) -> Path:
    knn.write(tmp_path / "detector")
    return tmp_path / "detector"


def stored_scores(results: Results, detector: str, count: int) -> list[float]:
    return results.confidences(detector)[:count].tolist()


@pytest.mark.parametrize("name", EXPORTED)
def test_every_detector_scores_images_as_the_results_do_after_a_round_trip(
    name: str, results: Results, images: list[Image.Image], tmp_path: Path
) -> None:
    exported = results.export_detector(name, false_alarms=0.1)
    exported.write(tmp_path / "detector")
    assert {path.name for path in (tmp_path / "detector").iterdir()} == {DESCRIPTION, ARRAYS}
    loaded = load_detector(tmp_path / "detector", MODEL)
    scores = loaded.score(images)
    assert scores == exported.score(images)
    if name in HALVED:
        assert any("one half" in note for note in loaded.notes)
        assert loaded.guarantee.images == 60
    else:
        assert loaded.guarantee.images == 120
    if name not in HALVED and name not in RANDOM:  # those draw by the name of an image
        confidences = [score.confidence for score in scores]
        assert confidences == pytest.approx(stored_scores(results, name, len(images)), rel=1e-4, abs=1e-5)


def test_a_network_that_states_no_normalisation_has_that_of_the_results(tmp_path: Path) -> None:
    torch.jit.trace(network().eval(), torch.rand(2, 3, 8, 8)).save(tmp_path / "net.ts")
    options: dict[str, Any] = {"trust_model": True, "device": "cpu"}
    done = evaluate(tmp_path / "net.ts", "digits", "msp", mean=0.5, std=0.25, **options)
    done.write(tmp_path / "results")
    detector = export_detector(tmp_path / "results", "msp", **options)
    assert detector.description.transform.spec["mean"] == [0.5, 0.5, 0.5]
    assert detector.description.transform.spec["std"] == [0.25, 0.25, 0.25]
    with pytest.raises(DataError):
        export_detector(tmp_path / "results", "msp", mean=0, std=1, **options)


def test_the_threshold_is_the_promised_rank_and_agrees_with_the_p_values(
    knn: ShippedDetector, images: list[Image.Image]
) -> None:
    calibration = knn.calibration
    assert knn.guarantee.rank == 12  # floor(0.1 * 121)
    assert knn.threshold == sorted(calibration)[11]
    assert (calibration < knn.threshold).sum() == 11
    far = UnknownDetectionSet("digits", role="far")
    scores = knn.score([*images, *(far[number][0] for number in range(8))])
    for score in scores:
        assert score.p_value == (1 + (calibration <= np.float32(score.confidence)).sum()) / 121
        assert score.in_distribution == (score.p_value > 0.1) == (score.confidence >= knn.threshold)
    assert {score.in_distribution for score in scores} == {True, False}


def test_the_calibration_scores_are_those_of_the_validation_images(knn: ShippedDetector) -> None:
    dataset = UnknownDetectionSet("digits", role="id", split="val")
    scores = knn.score([dataset[number][0] for number in range(len(dataset))])
    assert sorted(score.confidence for score in scores) == pytest.approx(knn.calibration.tolist(), rel=1e-4)


def test_an_image_is_scored_alone_as_in_a_batch_and_in_every_form(
    knn: ShippedDetector, images: list[Image.Image], tmp_path: Path
) -> None:
    image = images[3]
    image.save(tmp_path / "image.png")
    batched = knn.score(images)[3]
    forms: list[Any] = [image, np.asarray(image), np.asarray(image)[:, :, 0], image.convert("L")]
    for form in (*forms, tmp_path / "image.png", str(tmp_path / "image.png")):
        alone = knn(form)
        assert alone.confidence == pytest.approx(batched.confidence, rel=1e-4)
        assert alone.in_distribution == batched.in_distribution


@pytest.mark.parametrize("image", [None, 3, np.zeros((8, 8, 3)), np.zeros((2, 8, 8, 3), np.uint8)])
def test_what_is_not_an_image_is_refused(image: Any, knn: ShippedDetector) -> None:
    with pytest.raises(DataError):
        knn(image)


def test_an_image_that_the_network_cannot_take_does_not_spoil_the_others(
    knn: ShippedDetector, images: list[Image.Image]
) -> None:
    large = Image.new("RGB", (9, 9))
    good, bad, after = knn.score([images[0], large, images[1]])
    assert isinstance(bad, DataError)
    assert (good, after) == (knn(images[0]), knn(images[1]))


def test_results_in_memory_know_their_network_as_long_as_it_lives(store: Path) -> None:
    module = network(5)
    results = evaluate(module, "digits", "msp", store=store)
    assert results.export_detector("msp").model.module is module
    del module
    gc.collect()
    with raises(DataError, where="Sequential"):
        results.export_detector("msp")


def test_results_that_were_read_take_the_network_and_check_it(
    results: Results, knn: ShippedDetector, store: Path, tmp_path: Path
) -> None:
    results.write(tmp_path / "results")
    again = export_detector(tmp_path / "results", "knn", false_alarms=0.1, model=MODEL, store=store)
    assert again.description == knn.description
    assert (again.calibration == knn.calibration).all()
    with raises(DataError, where="Sequential"):
        export_detector(tmp_path / "results", "knn", model=network(1), store=store)
    with raises(DataError, where="Sequential"):
        export_detector(tmp_path / "results", "knn", store=store)


def test_parameters_are_those_of_the_results(results: Results) -> None:
    exported = results.export_detector("knn[k=5]")
    assert exported.description.params == {"k": 5}
    assert exported.description.detector == "knn[k=5]"


def test_values_that_a_sweep_chose_are_noted() -> None:
    swept = get_detector("knn").with_params({"k": 100}, "auroc of id/val against ood/val")
    assert "does not account for that choice" in _notes(swept, halved=False, calibration=np.arange(9.0))[0]


def test_an_epoch_that_was_selected_on_validation_images_is_noted(store: Path) -> None:
    module = network(3)
    results = evaluate(module, "digits", "msp", store=store)
    module.metadata = {"recipe": {"select": "val-loss"}}
    assert "selected on the validation images (val-loss)" in results.export_detector("msp").notes[0]
    module.metadata = {"recipe": {"select": "last"}}
    assert not results.export_detector("msp").notes


def test_another_network_is_refused(folder: Path) -> None:
    with raises(DataError, where="detector"):
        load_detector(folder, network(1))
    with raises(DataError, where="detector"):
        load_detector(folder)


def test_a_network_that_is_elsewhere_has_to_be_given(folder: Path) -> None:
    altered(folder, lambda content: content["network"].update(spec="trained:models/gone"))
    with raises(DataError, where="detector", naming=("network", "models/gone")):
        load_detector(folder)
    load_detector(folder, MODEL)


def test_images_are_resized_as_those_of_a_benchmark_in_a_view(store: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 6, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 6))
    evaluate(module, "digits", "msp", store=store).export_detector("msp").write(tmp_path / "detector")
    photograph = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8))
    resized = Image.fromarray(resize.apply(get_spec("fix-64"), photograph))
    expected = load_detector(tmp_path / "detector", module)(resized)
    altered(tmp_path / "detector", lambda content: content.update(view="fix-64"))
    assert load_detector(tmp_path / "detector", module)(photograph) == expected


def test_another_transform_warns(folder: Path, images: list[Image.Image]) -> None:
    with pytest.warns(UserWarning, match="the calibration used another transform"):
        load_detector(folder, MODEL, transform=evaluation_transform("none", std=(2, 2, 2)))
    load_detector(folder, MODEL, transform="none")(images[0])  # the stored one: no warning


def test_a_transform_that_is_a_function_has_to_be_given(store: Path, tmp_path: Path) -> None:
    def halved(image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 510

    results = evaluate(MODEL, "digits", "msp", transform=halved, transform_id="halved")
    results.export_detector("msp").write(tmp_path / "detector")
    with raises(DataError, where="detector", naming=("transform_id", "halved")):
        load_detector(tmp_path / "detector", MODEL)
    given = Transform({"transform_id": "halved"}, halved)
    assert load_detector(tmp_path / "detector", MODEL, transform=given).transform is given
    read = Results(**{**vars(results), "reopen": None})
    with pytest.raises(DataError):
        export_detector(read, "msp", model=MODEL)


def altered(folder: Path, change: Any) -> None:
    """Change detector.json, and seal it again."""
    path = folder / DESCRIPTION
    content = json.loads(path.read_text("utf-8"))
    content.pop(CHECKSUM)
    change(content)
    path.write_text(json.dumps({**content, CHECKSUM: digest_json(content)}), "utf-8")


def test_damaged_files_are_refused(folder: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    whole = (damaged / ARRAYS).read_bytes()
    (damaged / ARRAYS).write_bytes(whole[: len(whole) // 2])
    with raises(DataError, where="arrays.safetensors"):
        load_detector(damaged, MODEL)
    (damaged / ARRAYS).unlink()
    with raises(DataError, where="arrays.safetensors"):
        load_detector(damaged, MODEL)
    (damaged / DESCRIPTION).write_text("{}")
    with raises(DataError, where="detector.json", naming="malformed"):
        load_detector(damaged, MODEL)
    with raises(DataError, where=tmp_path, naming="detector.json"):
        load_detector(tmp_path, MODEL)


def test_a_folder_is_replaced_only_if_asked_for_and_never_one_with_other_files(
    knn: ShippedDetector, folder: Path, tmp_path: Path
) -> None:
    before = (folder / ARRAYS).read_bytes()
    with raises(OutputError, where="detector"):
        knn.write(folder)
    knn.write(folder, overwrite=True)
    assert (folder / ARRAYS).read_bytes() == before  # equal inputs, equal bytes
    (folder / "notes.txt").write_text("mine")
    with raises(OutputError, where="detector", naming="notes.txt"):
        knn.write(folder, overwrite=True)
    assert (folder / "notes.txt").exists()
    (tmp_path / "file").write_text("")
    with raises(OutputError, where="file"):
        knn.write(tmp_path / "file")


def test_rates_that_the_validation_images_cannot_keep_are_refused(results: Results) -> None:
    with raises(DataError, where="digits", naming=("120", "999")):
        results.export_detector("knn", false_alarms=0.001)
    with pytest.raises(DataError):
        results.export_detector("knn", false_alarms=5)


def test_detectors_that_cannot_be_exported_are_refused_by_name(store: Path) -> None:
    models = {"two": [network(1), network(2)]}
    results = evaluate(models, "digits", ["ensemble", "msp"], store=store)
    with raises(DataError, where="'ensemble'"):
        results.export_detector("ensemble")
    with raises(UnknownNameError, where="digits", naming="energy"):
        results.export_detector("energy")
    with raises(DataError, where="digits", naming="7"):
        results.export_detector("msp", run=7)
    assert "run 0 of 2 of two" in results.export_detector("msp").notes[0]
    assert not results.export_detector("msp", run=1).notes
    several = evaluate(dict(zip("ab", models["two"], strict=True)), "digits", "msp", store=store)
    with raises(DataError, where="digits"):
        several.export_detector("msp")
    assert several.export_detector("msp", run=1).description.network.key == results.about.runs[1].model_key


@dataclass(frozen=True)
class Nearest:
    """A detector of a user: minus the distance to the mean of the training features."""

    power: float = 2.0
    needs = ("features",)
    fit_on = "train"

    def fit(self, data: Any, head: Any) -> dict[str, Any]:
        return {
            "mean": np.asarray(data["features"]).mean(axis=0),
            "note": ("of the user", 1, None, np.float64(2)),
        }

    def score(self, state: Any, data: Any) -> Any:
        return -(np.abs(np.asarray(data["features"]) - state["mean"]) ** self.power).sum(axis=1)


@dataclass(frozen=True)
class Unstorable(Nearest):
    """A detector whose state is an object."""

    def fit(self, data: Any, head: Any) -> Any:
        return {**super().fit(data, head), "machine": object()}


def test_a_detector_of_a_user_is_exported_and_given_when_it_is_loaded(
    store: Path, images: list[Image.Image], tmp_path: Path
) -> None:
    results = evaluate(MODEL, "digits", [Nearest, Unstorable], store=store)
    results.export_detector(Nearest).write(tmp_path / "detector")
    with raises(DataError, where="detector", naming="nearest"):
        load_detector(tmp_path / "detector", MODEL)
    loaded = load_detector(tmp_path / "detector", MODEL, detector=Nearest)
    assert [score.confidence for score in loaded.score(images)] == pytest.approx(
        stored_scores(results, "nearest", len(images)), rel=1e-4
    )
    with raises(DataError, where="detector", naming=("nearest", "knn")):
        load_detector(tmp_path / "detector", MODEL, detector="knn")
    with raises(DataError, where="'unstorable'"):
        results.export_detector(Unstorable)


def test_sets_given_in_python_are_refused() -> None:
    sets = {role: (torch.rand(8, 3, 8, 8), torch.arange(8) % 2) for role in ("id", "near")}
    results = evaluate(network(), sets=sets, classes=6, detectors="msp")
    with raises(DataError, where="own-sets"):
        results.export_detector("msp")


def test_files_and_folders_are_scored_with_every_problem_said(
    knn: ShippedDetector, images: list[Image.Image], tmp_path: Path
) -> None:
    (tmp_path / "sub" / ".hidden").mkdir(parents=True)
    images[0].save(tmp_path / "b.png")
    images[1].save(tmp_path / "sub" / "a.PNG")
    images[2].save(tmp_path / "sub" / ".hidden" / "c.png")
    (tmp_path / "truncated.png").write_bytes((tmp_path / "b.png").read_bytes()[:60])
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    table = score_files(knn, [tmp_path, tmp_path / "notes.txt"])
    batch = score_files(knn, [tmp_path], fdr=0.5)
    assert [s.outlier for s in batch.scores if s.problem is None] == [
        score.outlier for score in knn.score(images[:2], fdr=0.5)
    ]
    rows = {Path(row["image"]).relative_to(tmp_path).as_posix(): row for row in table.rows()}
    assert list(rows) == ["b.png", "text.png", "truncated.png", "sub/a.PNG", "notes.txt"]
    scored = [name for name, row in rows.items() if row["problem"] is None]
    assert scored == ["b.png", "sub/a.PNG"]
    assert rows["b.png"]["confidence"] == knn(images[0]).confidence
    assert "truncated" in rows["truncated.png"]["problem"]
    assert rows["text.png"]["confidence"] is None
    assert [Path(path).name for path in table.passed_over] == ["link", "notes.txt"]
    assert table.to_table().num_rows == 5
    table.write(tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text("utf-8").splitlines()[0].startswith("image,confidence,p_value")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.txt").write_text("")
    with raises(DataError, where="empty"):
        score_files(knn, [tmp_path / "empty"])
    with raises(SourceError, where="nowhere"):
        score_files(knn, [tmp_path / "nowhere"])


def test_the_list_of_this_page_is_every_detector() -> None:
    assert {*EXPORTED, COMBINED, *ON_OUTLIERS, *NEEDS_MODEL} == set(list_detectors())


@pytest.mark.parametrize("restrict", ["columns", "full"])
def test_another_mapping_of_the_same_width_is_refused(restrict: str, store: Path, tmp_path: Path) -> None:
    order, other = [1, 0, 2, 3, 4, 5], [0, 2, 1, 3, 4, 5]
    (tmp_path / "order.txt").write_text("\n".join(map(str, order)))
    mapped = evaluate(MODEL, "digits", "msp", store=store, mapping=order, restrict=restrict)
    mapped.write(tmp_path / "results")
    for results in (mapped, tmp_path / "results"):
        with pytest.raises(DataError) as caught:
            export_detector(results, "msp", model=MODEL, store=store, mapping=other)
        assert caught.value.where == mapped.about.runs[0].name
        same = export_detector(results, "msp", model=MODEL, store=store, mapping=tmp_path / "order.txt")
        assert same.description.columns.columns == order
    facts = mapped.about.runs[0].class_map
    assert facts is not None
    older = facts.model_copy(update={"order": None})  # counts and the origin are all that it has
    assert older.is_of({**facts.model_dump(), "order": "00000000"})
    assert not older.is_of({**facts.model_dump(), "mapping": "classes"})
