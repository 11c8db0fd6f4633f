"""Images that a detector fits on and that a root lacks: known before any forward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.construct import build_benchmark

torch = pytest.importorskip("torch", reason="needs torch")

from loaders import evaluate  # noqa: E402 - after importorskip
from loaders.harness.results.results import Results  # noqa: E402 - after importorskip
from tests.photographs import COUNT, GOLDFISH, SHARK, TENCH, image_file, write_root  # noqa: E402 - after importorskip

RECIPE = f"""
schema = 1
name = "fitted"
draw = "fitted"
[[group]]
name = "known"
role = "id"
source = "imagenet1k"
classes = {{ listed = ["{TENCH}", "{GOLDFISH}"] }}
[group.images]
test = {{ from = "train", per_class = 1 }}
val = {{ from = "train", per_class = 1 }}
train = {{ from = "train", rest = true }}
[[group]]
name = "near"
role = "near"
source = "imagenet1k"
classes = {{ listed = ["{SHARK}"] }}
[group.images]
test = {{ from = "train", per_class = 2 }}
val = {{ from = "train", rest = true }}
"""


class Counting(torch.nn.Module):  # type: ignore[name-defined]
    """A network that counts the images that it gets."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.images = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2)), 0

    def forward(self, x: Any) -> Any:
        self.images += len(x)
        return self.inner(x)


@pytest.fixture
def without(tmp_path: Path) -> Any:
    """Evaluate with ``allow_missing`` on a root that lacks the images of a split of the ID set."""

    def evaluated(split: str, detectors: Any, network: Counting, **options: Any) -> Results:
        root, recipe = write_root(tmp_path / "imagenet", (32, 32)), tmp_path / "fitted.toml"
        recipe.write_text(RECIPE)
        folder = build_benchmark(recipe, roots={"imagenet1k": root}, out=tmp_path, local=True).folder
        from wordnet_splits.benchmark.resolve import load_manifest

        manifest = load_manifest(folder)
        ids = {name.rpartition("/")[2] for name in manifest.images(split, "known")["image_id"].to_pylist()}
        for class_id in (TENCH, GOLDFISH):
            for number in range(COUNT):
                path = image_file(root, class_id, number)
                if path.stem in ids:
                    path.unlink()
        settings: dict[str, Any] = {"roots": {"imagenet1k": root}, "allow_missing": True, "device": "cpu"}
        return evaluate(network, manifest, detectors, **settings, **options)

    return evaluated


@pytest.mark.parametrize("detectors", ["msp,knn[k=1]", ["knn[k=1]", "msp"], "preset:simple"])
def test_a_detector_without_its_training_images_is_left_out_with_a_note(without: Any, detectors: Any) -> None:
    results = without("train", detectors, Counting())
    assert "msp" in results.detectors
    assert not any(name.startswith("knn") for name in results.detectors)
    assert any("knn" in note for note in results.about.notes)
    assert any(line.startswith("known/train: ") for line in results.about.left_out)


def test_runs_of_one_model_leave_it_out_too(without: Any) -> None:
    results = without("train", "msp,knn[k=1]", {"a": [Counting(), torch.nn.Sequential(Counting())]})
    assert results.detectors == ("msp",)


@pytest.mark.parametrize(("split", "options"), [("train", {}), ("val", {"sweep": True})])
def test_nothing_to_score_or_to_choose_on_is_refused_before_the_test_images(
    without: Any, split: str, options: Any
) -> None:
    network = Counting()
    with pytest.raises(DataError):
        without(split, "knn", network, **options)
    assert network.images <= 4  # a batch that tells the width of the outputs
