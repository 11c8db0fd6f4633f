"""A pretend operator, source, format, metric, detector, method and command, each added in one file of a copy.

A source has its catalog beside it. The programs of the copy list each and use it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loaders.harness.detectors import DETECTORS
from tests.pretend_source import CATALOG, SOURCE, write_images
from wordnet_splits.benchmark.rules.registry import OPERATORS
from wordnet_splits.datasets.sources.source import SOURCES
from wordnet_splits.exchange.formats import FORMATS
from wordnet_splits.metrics import METRICS

REPOSITORY = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.docs
OPERATOR = """
from pydantic import PositiveInt

from {package}.registry import NOTHING, Finding, register_operator


def words(finding, names):
    return f"{{names.subject}} has a name of {{'more' if finding.holds else 'fewer'}} letters"


@register_operator("long_name", value=PositiveInt, meaning="a long name", reads=NOTHING, wording=words)
def long_name(expression, candidates):
    names = {{c: candidates.catalog[c].name for c in candidates.class_ids}}
    return {{c: Finding(expression, len(name) > expression.value) for c, name in names.items()}}
"""
RECIPE = """
schema = 1
name = "long"
[[group]]
name = "long"
role = "id"
source = "cifar100"
classes = { long_name = 12 }
images = { test = { from = "test", all = true } }
[[group]]
name = "short"
role = "near"
source = "cifar100"
classes = { rest = true }
images = { test = { from = "test", all = true } }
"""
FORMAT = """
from {package} import ExchangeFormat, register_format


@register_format("ids")
class Ids(ExchangeFormat):
    about = "ids, one a line"

    def write(self, task, folder):
        for (split, group), table in task.tables():
            (folder / f"{{split}}-{{group}}.txt").write_text("\\n".join(table["image_id"].to_pylist()))

    def read(self, task):
        return ()
"""
METRIC = """
import numpy as np

from {package}.registry import pair_metric


@pair_metric(higher_is_better=True)
def youden(counts):
    true, false = counts.cum_id / counts.n_id[..., None], counts.cum_ood / counts.n_ood[..., None]
    return np.maximum((true - false).max(axis=-1), 0.0)
"""
DETECTOR = """
import numpy as np

from .registry import register


@register("second", needs=("logits",))
def second(data):
    return -np.sort(np.asarray(data["logits"]), axis=1)[:, -2]
"""
METHOD = """
from dataclasses import dataclass

from .classification import Softmax
from .registry import register_method


@register_method("halved")
@dataclass(frozen=True)
class Halved(Softmax):
    def step(self, model, batch, state):
        return {name: 0.5 * value for name, value in super().step(model, batch, state).items()}
"""


COMMAND = """
from wordnet_splits.cli.main import app
@app.command("audit echo", examples=["wordnet-splits audit echo hello"])
def echo(word: str) -> None:
    "Print a word."
    print(word)
"""


def skipped(folder: str, names: list[str]) -> list[str]:
    """Return the names that a copy leaves out: caches, and the data of wordnet_splits."""
    data = ["data"] if folder == str(REPOSITORY / "wordnet_splits") else []
    return [name for name in names if name in ("__pycache__", *data)]


class Copy:
    """A copy of the packages, whose catalogs are files of its own and other data links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for package in ("wordnet_splits", "fix_resize", "loaders"):
            shutil.copytree(REPOSITORY / package, folder / package, ignore=skipped)
        data = folder / "wordnet_splits" / "data"
        data.mkdir()
        for path in (REPOSITORY / "wordnet_splits" / "data").iterdir():
            if path.name == "catalogs":
                shutil.copytree(path, data / path.name)
            else:
                (data / path.name).symlink_to(path)
        (folder / "manifests").symlink_to(REPOSITORY / "manifests")

    def add(self, package: str, text: str) -> None:
        """Write a module of a package."""
        text = text.format(package=package) if "{package}" in text else text
        (self.folder / package.replace(".", "/") / "pretend.py").write_text(text, "utf-8")

    def run(self, module: str, *arguments: str, code: int = 0) -> str:
        """Run a program of the copy; return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", f"{module}.cli.main", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """A copy of the packages."""
    return Copy(tmp_path)


def near(copy: Copy, module: str, *arguments: str) -> list[str]:
    """Return the names that an error of the copy suggests."""
    suggested: list[str] = json.loads(copy.run(module, *arguments, "--json", code=2))["error"]["near"]
    return suggested


@pytest.mark.always
def test_an_operator_is_one_file(copy: Copy) -> None:
    copy.add(OPERATORS.folder, OPERATOR.format(package=OPERATORS.folder.rpartition(".")[0]))
    (copy.folder / "long.toml").write_text(RECIPE, "utf-8")
    copy.run("wordnet_splits", "build", "long.toml", "--out", "build")
    explained = copy.run("wordnet_splits", "explain", "build/long", "aquarium_fish", "--json")
    assert "has a name of more letters" in explained
    (copy.folder / "long.toml").write_text(RECIPE.replace("long_name", "long_nam"), "utf-8")
    assert near(copy, "wordnet_splits", "build", "long.toml") == ["long_name"]


@pytest.mark.always
def test_a_source_is_one_file_and_its_catalog(copy: Copy) -> None:
    copy.add(SOURCES.folder, SOURCE)
    (copy.folder / "wordnet_splits" / "data" / "catalogs" / "pretend.tsv").write_text(CATALOG, "utf-8")
    write_images(copy.folder / "pics")
    assert "pretend" in copy.run("wordnet_splits", "sources", "list")
    states = json.loads(copy.run("wordnet_splits", "sources", "check", "--root", "pretend=pics", "--json"))
    (state,) = (row for row in states["sources"] if row["name"] == "pretend")
    assert state["state"] == "complete"


def test_a_format_is_one_file(copy: Copy) -> None:
    copy.add(FORMATS.folder, FORMAT)
    copy.run("wordnet_splits", "export", "digits", "--format", "ids", "--out", "out")
    assert (copy.folder / "out" / "test-uniform.txt").exists()
    assert "ids" in near(copy, "wordnet_splits", "export", "digits", "--format", "idz", "--out", "other")


def test_a_detector_and_a_metric_are_one_file_each(copy: Copy) -> None:
    pytest.importorskip("torch", reason="the harness needs torch")
    copy.add(DETECTORS.folder, DETECTOR)
    copy.add(METRICS.folder, METRIC)
    net = "from torch import nn\nnet = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))\n"
    (copy.folder / "net.py").write_text(net, "utf-8")
    assert "second" in copy.run("loaders.harness", "list", "detectors")
    words = ("--model", "net:net", "--detectors", "second", "--mean", "0", "--std", "1", "--out", "results")
    copy.run("loaders.harness", "run", "--benchmark", "digits", "--group", "uniform", *words)
    pq = pytest.importorskip("pyarrow.parquet")
    rows = pq.read_table(copy.folder / "results" / "results.parquet")
    assert {"youden", "auroc"} <= set(rows["metric"].to_pylist())


def test_a_training_method_is_one_file(copy: Copy) -> None:
    pytest.importorskip("torch", reason="the harness needs torch")
    from loaders.harness.training.methods.registry import METHODS

    copy.add(METHODS.folder, METHOD)
    copy.run("loaders.harness", "audit-method", "halved")
    assert near(copy, "loaders.harness", "audit-method", "halvd") == ["halved"]


def test_commands_come_and_go_with_their_files(copy: Copy) -> None:
    copy.add("wordnet_splits.cli", COMMAND)
    assert copy.run("wordnet_splits", "audit", "echo", "hello") == "hello\n"
    assert "near-duplicates" in copy.run("wordnet_splits", "audit", "--help")
    shutil.rmtree(copy.folder / "wordnet_splits" / "duplicates")
    overview = copy.run("wordnet_splits", "audit", "--help")
    expected = {"echo": True, "leaks": True, "thresholds": True, "near-duplicates": False}
    assert {name: name in overview for name in expected} == expected
    assert "audit" in copy.run("wordnet_splits", "--help")
