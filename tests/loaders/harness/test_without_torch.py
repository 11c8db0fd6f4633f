"""What needs no torch works without it; what does says in one line how to install it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from loaders.harness.training import choices, networks, optimizers
from loaders.harness.training.methods import image_operations
from tests.loaders.harness.absent_torch import BLOCKED
from tests.raising import raises
from tests.wordnet_splits.command import environment
from wordnet_splits.base.lazy import MissingPackageError, need

COMMAND = "from loaders.harness.cli.main import main; main()"
ABSENT = "torch is not installed (pip install '"
INSTALLED = "[torch]')"
"""The ends of the message; between them stands where the package was installed from."""
TRAIN = ("train", "--benchmark", "digits", "--recipe", "digits-demo", "--out", "models")


def without_torch(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [("list", "recipes", "--json"), ("list", "detectors", "msp", "--json")])
def test_what_lists_needs_no_torch(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = without_torch(COMMAND, tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[arguments[1]]


def test_the_overview_needs_no_torch(tmp_path: Path) -> None:
    done = without_torch(COMMAND, tmp_path, "--help")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [TRAIN, ("run", "--benchmark", "digits", "--model", "nets:net")])
def test_commands_say_what_to_install(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = without_torch(COMMAND, tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: unknown-eval {arguments[0]}: {ABSENT}")
    assert done.stderr.endswith(f"{INSTALLED}\n")


IMPORTS = (
    *("loaders UnknownDetectionSet", "wordnet_splits.torch UnknownDetectionSet"),
    *("loaders.harness evaluate", "loaders.harness load_model", "loaders.harness train"),
)


def test_imports_end_in_a_line_that_says_what_to_install(tmp_path: Path) -> None:
    lines = (line.split() for line in IMPORTS)
    code = "\n".join(
        f"try:\n from {module} import {name}\nexcept ImportError as error: print(error)"
        for module, name in lines
    )
    done = without_torch(code, tmp_path)
    errors = done.stdout.splitlines()
    assert all(error.endswith(INSTALLED) for error in errors), done.stderr
    assert all(error.startswith(f"loaders.UnknownDetectionSet: {ABSENT}") for error in errors[:2])
    assert len(errors) == len(IMPORTS)
    for line, error in zip(IMPORTS[2:], errors[2:], strict=True):
        assert f".{line.split()[1]}: {ABSENT}" in error


def test_arrays_are_evaluated_without_it(tmp_path: Path) -> None:
    code = """
from loaders import evaluate_arrays

logits = [[9.0, 0.0], [0.0, 9.0], [8.0, 1.0]]
sets = {"id": {"logits": logits, "labels": [0, 1, 0]}, "near": {"logits": [[1.0, 2.0], [2.0, 2.5]]}}
results = evaluate_arrays(sets, "preset:openood")
print(results)
print(len(results.plot.roc().panels), "export_detector" in dir(results), hasattr(results, "other"))
"""
    done = without_torch(code, tmp_path)
    (note,) = (line for line in done.stdout.splitlines() if line.startswith("Note: ") and " knn," in line)
    assert "ID train images" in note, done.stderr
    assert done.stdout.endswith("\n1 True False\n"), done.stderr


def test_arrays_on_a_benchmark_need_no_torch(tmp_path: Path) -> None:
    code = """
import numpy as np
from pathlib import Path
from loaders.harness import image_ids

Path("mine").mkdir()
for seed, group in enumerate(("digits-0-5", "digits-6-9", "gaussian", "uniform")):
    ids = image_ids("digits", group)
    np.savez(f"mine/{group}.npz", ids=ids, logits=np.random.default_rng(seed).normal(size=(len(ids), 6)))
"""
    made = without_torch(code, tmp_path)
    assert made.returncode == 0, made.stderr
    run = ("run", "--benchmark", "digits", "--arrays", "mine", "--detectors", "msp", "--out", "r")
    for arguments, shows in (
        (("scores", "ids", "digits", "uniform"), "uniform/8x8x1/s0/00499"),
        (run, "Model mine: weights as given in arrays"),
        (("recompute", "--check", "r"), "all recompute"),
    ):
        done = without_torch(COMMAND, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        assert shows in done.stdout


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (ModuleNotFoundError("no", name="torch"), "torch"),
        (ImportError("libtorch.so: failed to map segment"), ("torch", "libtorch.so")),
        (
            ModuleNotFoundError("No module named 'sympy'", name="sympy"),
            "torch",
        ),
        (MemoryError(), "torch"),
    ],
)
def test_a_package_that_fails_to_load_is_not_called_absent(
    error: BaseException, named: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str) -> ModuleType:
        raise error

    monkeypatch.setattr("wordnet_splits.base.lazy.import_module", fails)
    with raises(MissingPackageError, where="here", naming=named) as caught:
        need("torch", "torch", where="here")
    assert str(caught.value).count("\n") == 0


def test_every_name_that_a_recipe_may_use_has_its_function() -> None:
    assert all(hasattr(networks, kind.module) for kind in choices.NETWORKS.registered.values())
    assert all(hasattr(image_operations, name) for name in choices.AUGMENTATIONS.values())
    places = (optimizers, torch.optim)
    assert all(any(hasattr(place, name) for place in places) for name in choices.UPDATE_RULES.values())


def test_answers_in_the_hierarchy_are_read_from_stored_logits(tmp_path: Path) -> None:
    from loaders.harness import evaluate

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
    evaluate(network, "digits", "msp", store=tmp_path / "store").write(tmp_path / "results")
    done = without_torch(COMMAND, tmp_path, "hierarchy", "results", "--store", "store", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["benchmark"] == "digits"


ARRAYS = """
import numpy as np
from loaders import evaluate_arrays
logits = np.arange(24.0).reshape(4, 6) % 7
known = {"logits": logits, "labels": np.arange(4)}
results = evaluate_arrays({"id": known, "near": {"logits": -logits}}, "msp,energy")
print(results.summary("auroc"))
"""


def test_evaluation_of_arrays_needs_only_the_core(tmp_path: Path) -> None:
    done = without_torch(ARRAYS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "energy" in done.stdout
