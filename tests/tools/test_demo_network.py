"""The embedded network is trained again to its bytes, and evaluated by name."""

from __future__ import annotations

import pytest

pytest.importorskip("safetensors", reason="the network is stored by safetensors")

from tests.raising import raises
from tools.demo_network import FILE, trained
from wordnet_splits.base.errors import DataError, UnknownNameError


def test_it_is_trained_to_the_same_bytes() -> None:
    assert trained() == FILE.read_bytes()
    assert FILE.stat().st_size < 50_000


def test_it_is_evaluated_by_name() -> None:
    pytest.importorskip("torch", reason="models need torch")
    from loaders.harness import evaluate

    results = evaluate("demo:digits", "digits", "msp", device="cpu", progress=False)
    assert results.rows(metric="accuracy", group="(pooled)", role="id")[0]["value"] > 0.95
    assert results.rows(metric="auroc", group="(mean)", role="near")[0]["value"] > 0.9
    with raises(UnknownNameError):
        evaluate("demo:numbers", "digits", "msp")


def test_it_takes_no_other_weights() -> None:
    pytest.importorskip("torch", reason="models need torch")
    from loaders.harness import load_model

    with raises(DataError, where="demo:digits"):
        load_model("demo:digits", weights="no/such/file.pt")
