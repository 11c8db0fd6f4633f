"""A benchmark of the Hub, from publishing to a checked entry: what is measured on it is what it is here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loaders.harness import check_results, evaluate
from loaders.harness.cli.main import app
from loaders.harness.leaderboard import read_entry, submit
from tests.hub_server import at_hand
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.hub.publish import publish
from wordnet_splits.hub.release import collect_release
from wordnet_splits.remote import Address

ADDRESS = "hf://datasets/org/set@v1/digits"


def test_a_trained_model_on_a_pulled_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    with at_hand(monkeypatch, tmp_path):
        publish(Address("org/set"), collect_release([find_manifest("digits")]), tag="v1")
        cpu = ["--device", "cpu"]
        trained = [
            "train",
            "--benchmark",
            ADDRESS,
            "--recipe",
            "digits-demo",
            "--seeds",
            "0",
            "--epochs",
            "1",
        ]
        assert run(app, [*trained, "--threads", "1", *cpu, "--out", "models"], "unknown-eval") == 0
        model = "trained:models/digits"
        words = ["run", "--benchmark", ADDRESS, "--model", model, "--detectors", "msp,knn[k=5]", *cpu]
        assert run(app, [*words, "--out", "pulled", "--json"], "unknown-eval") == 0
        capsys.readouterr()
        here = evaluate(model, "digits", "msp,knn[k=5]", device="cpu")
        assert here.scores.equals(evaluate(model, ADDRESS, "msp,knn[k=5]", device="cpu").scores)
        assert check_results("pulled").ok
        entry = read_entry(submit("pulled", by="somebody", to="entries"))
    assert entry.facts.images == load_manifest("digits").fingerprint
    stored = json.loads(Path("pulled/about.json").read_text())["about"]
    assert (stored["benchmark"], stored["version"]) == ("digits", load_manifest("digits").version)
