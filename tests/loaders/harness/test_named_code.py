"""``MODULE:NAME`` in a file of somebody else: nothing is imported or called unless the user trusts it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from torch import nn

from loaders.harness import Results, evaluate, load_detector, load_model
from loaders.harness.deployment.detector_folder import DESCRIPTION
from loaders.harness.deployment.export import export_detector
from loaders.harness.models.sources.registry import METADATA
from loaders.harness.results.check import check_results
from loaders.harness.results.scores import IMAGES
from loaders.harness.training import train_recipe
from loaders.harness.training.checkpoint import build_from, portable_state, save_checkpoint
from loaders.harness.training.recipe import load_recipe
from tests.loaders.harness.altering import reseal
from tests.loaders.harness.training.test_checkpoints import METADATA as TRAINED
from tests.loaders.harness.training.test_checkpoints import NETWORK
from wordnet_splits.base.errors import SplitsError, UnsafeDataError

MODEL = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
OURS = "evil_module"
NAMES = (f"{OURS}:make", "os:getpid", "builtins:list")
"""A module here, one that is imported already, and a class."""
RECIPE = 'schema = 1\nextends = "digits-demo"\n'


@pytest.fixture(autouse=True)
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in the working directory that leaves a trace when it is imported."""
    (tmp_path / f"{OURS}.py").write_text(
        "open('ran', 'w').close()\ndef make(*_): open('called', 'w').close()\n"
    )
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop(OURS, None)


@pytest.fixture(scope="module")
def results() -> Results:
    torch.manual_seed(0)
    return evaluate(MODEL, "digits", "msp", groups=["uniform"])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "detector"
    evaluate(MODEL, "digits", "msp", groups=["uniform"]).export_detector("msp").write(folder)
    return folder


def detector(exported: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    folder = Path("detector")
    folder.mkdir()
    for file in exported.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    reseal(folder / DESCRIPTION, change)
    return folder


def stored(results: Results, **changes: str) -> Path:
    results.write("results")
    reseal(Path("results/about.json"), lambda content: content["about"]["runs"][0].update(changes))
    return Path("results")


def trained(change: Callable[[dict[str, Any]], None]) -> Path:
    folder = save_checkpoint(Path("run"), portable_state(build_from(NETWORK)), TRAINED)
    reseal(folder / METADATA, change)
    return folder


def recipe(key: str) -> Path:
    path = Path("mine.toml")
    path.write_text(f"{RECIPE}{key}\n")
    return path


def of_network(name: str, exported: Path, _: Results) -> object:
    return load_detector(detector(exported, lambda content: content["network"].update(spec=name)))


def of_detector(name: str, exported: Path, _: Results) -> object:
    return load_detector(detector(exported, lambda content: content.update(name=name)), MODEL)


def of_results(name: str, _: Path, results: Results) -> object:
    return export_detector(stored(results, weights={"kind": "model", "spec": name}), "msp")


def of_results_with_a_file(name: str, _: Path, results: Results) -> object:
    return export_detector(stored(results, weights={"kind": "file", "spec": name, "weights": "w.pt"}), "msp")


def of_trained_network(name: str, *_: Any) -> object:
    return load_model(f"trained:{trained(lambda content: content['network'].update(name=name))}")


def of_trained_method(name: str, *_: Any) -> object:
    return load_model(f"trained:{trained(lambda content: with_method(content, name))}")


def with_method(content: dict[str, Any], name: str) -> None:
    content["recipe"]["method"] = {"name": name}
    content["method"] = {"head": "fc", "facts": {}}


def of_detector_on_trained_network(name: str, exported: Path, _: Results) -> object:
    spec = f"trained:{trained(lambda content: content['network'].update(name=name))}"
    return load_detector(detector(exported, lambda content: content["network"].update(spec=spec)))


def of_recipe_network(name: str, *_: Any) -> object:
    return load_recipe(recipe(f'network = "{name}"'))


def of_recipe_method(name: str, *_: Any) -> object:
    return train_recipe(str(recipe(f'[method]\nname = "{name}"')), "digits", "models", epochs=1)


DOORS = (
    of_network,
    of_detector,
    of_results,
    of_results_with_a_file,
    of_trained_network,
    of_trained_method,
    of_detector_on_trained_network,
    of_recipe_network,
    of_recipe_method,
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("door", DOORS)
def test_a_name_in_a_file_is_not_imported_unasked(
    door: Callable[..., object], name: str, exported: Path, results: Results
) -> None:
    with pytest.raises(UnsafeDataError) as refused:
        door(name, exported, results)
    assert refused.value.where
    assert not Path("ran").exists()
    assert not Path("called").exists()


def test_trusted_names_are_imported(exported: Path) -> None:
    folder = detector(exported, lambda content: content["network"].update(spec=f"{OURS}:make"))
    with pytest.raises(SplitsError):  # what it makes is no model
        load_detector(folder, trust_model=True)
    assert Path("called").exists()


@pytest.mark.parametrize("label", ["msp[],{}", "msp[T=1],{}", "{}", "preset:openood,{}"])
def test_the_label_of_a_detector_is_not_imported_to_check_results(label: str, results: Results) -> None:
    label = label.format(NAMES[0])
    facts = tuple(f.model_copy(update={"detector": label}) for f in results.about.detectors)
    names = [label if name == "msp" else name for name in results.results["detector"].to_pylist()]
    place = results.results.schema.names.index("detector")
    relabelled = replace(
        results,
        results=results.results.set_column(place, "detector", pa.array(names, pa.string())),
        scores=results.scores.rename_columns([*IMAGES.names, f"{label}/0"]),
        about=results.about.model_copy(update={"detectors": facts}),
    )
    relabelled.write("results")
    assert not check_results("results").ok  # the rows by class have another label
    assert not Path("ran").exists()


@pytest.mark.parametrize("name", ["preset:openood", "msp,knn", "", "[", "msp[x=1]", "msp[],evil_module:make"])
def test_a_detector_of_another_form_is_refused(name: str, exported: Path) -> None:
    folder = detector(exported, lambda content: content.update(name=name))
    with pytest.raises(SplitsError) as refused:
        load_detector(folder, MODEL)
    assert refused.value.where == str(folder)
    assert not Path("ran").exists()
