"""Models and weights that are damaged, hostile or not what they are taken for: one line each."""

from __future__ import annotations

import json
import os
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders.harness.models.loading import load_model, open_models
from tests.raising import mentions, raises
from wordnet_splits.base.errors import SplitsError

from .networks import small_network

X = torch.rand(4, 3, 8, 8)


def refused(named: object, *arguments: Any, **options: Any) -> str:
    """Return the one line that loading or a first forward pass ends in."""
    with raises(SplitsError, naming=named) as caught:
        load_model(*arguments, **{"device": "cpu", **options}).prepare(X)
    line = str(caught.value)
    assert line.isprintable()
    return line


MODULES = {
    "raises": ("raise KeyError(3)", ("raises", "KeyError: 3")),
    "broken": ("def f(:", ("broken", "SyntaxError")),
    "maker": ("def net(): raise AttributeError('no\\n\x1b[2Jsecond')", ("AttributeError: no",)),
    "late": ("def net(x): raise IndexError('deep')", ("IndexError: deep",)),
}


@pytest.mark.parametrize("name", MODULES)
def test_code_of_a_user_that_raises_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, named = MODULES[name]
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    options = {"model_id": "late"} if name == "late" else {}
    with pytest.raises(SplitsError) as caught:
        load_model(f"{name}:net", device="cpu", **options).prepare(X)
    assert caught.value.__cause__ is not None  # the traceback is there for whoever wants it
    line = caught.value.what
    assert line.isprintable()
    assert all(mentions(line, value) for value in named), line


@pytest.mark.parametrize("path", ["./nets.py:net", "nets.py:net", "/tmp/nets.py:net", "..:net"])
def test_a_file_in_the_place_of_a_module_says_what_to_write(path: str) -> None:
    refused(() if path == "..:net" else "nets:net", path)


@pytest.mark.parametrize("device", ["cuda:97", "nonsense", "meta:-7"])
def test_a_device_that_is_not_there_is_one_line(device: str) -> None:
    refused(("--device", device), small_network(), device=device)


def test_a_function_takes_its_name_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "functions.py").write_text("def pair(x): return x.flatten(1), x.flatten(1)[:, :3]")
    monkeypatch.chdir(tmp_path)
    ((unnamed,),) = open_models(["functions:pair"], device="cpu").values()
    assert (unnamed.name, unnamed.identified) == ("functions:pair", True)  # by its module's file
    ((model,),) = open_models(["functions:pair"], device="cpu", model_id="first three").values()
    assert model.name == "first three"


class Ends(nn.Module):
    def __init__(self, end: Any) -> None:
        super().__init__()
        self.network, self.end = small_network(), end

    def forward(self, x: Any) -> Any:
        return self.end(self.network(x))


@pytest.mark.parametrize("head", [None, "network.6"])
@pytest.mark.parametrize(
    ("end", "named"),
    [
        (lambda z: z * float("nan"), "4"),
        (lambda z: z.index_fill(0, torch.tensor([2]), float("inf")), ("1", "4")),
        (lambda z: z.softmax(1), "logits"),
        (lambda z: z.softmax(1).half(), "logits"),
    ],
)
def test_nan_and_probabilities_are_called_so(head: str | None, end: Any, named: object) -> None:
    refused(named, Ends(end), head=head)


def test_log_probabilities_and_other_logits_pass() -> None:
    for end in (lambda z: z.log_softmax(1), lambda z: z.sigmoid(), lambda z: z):
        model = load_model(Ends(end), device="cpu", head="network.6")
        assert model.notes == ()
        model.prepare(X)
        assert ("log-probabilities" in " ".join(model.notes)) == (end(torch.zeros(1, 2)).sum() < 0)


def write_torchscript(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(small_network().eval(), X).save(str(path))


def write_safetensors(path: Path, header: bytes) -> None:
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


SPEC: dict[str, Any] = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
FILES: dict[str, Any] = {
    "script.pt": write_torchscript,
    "int.pt": lambda p: torch.save({1: torch.zeros(1), "a": torch.zeros(1)}, p),
    "claims.pt": lambda p: torch.save({"a": torch.zeros(1).expand(2**40)}, p),
    "sparse.pt": lambda p: torch.save({"a": torch.zeros(3).to_sparse()}, p),
    "meta.pt": lambda p: torch.save({"a": torch.zeros(3, device="meta")}, p),
    "half.pt": lambda p: p.write_bytes(b"PK\x03\x04" + bytes(40)),
    "text.safetensors": lambda p: p.write_text("hello"),
    "long.safetensors": lambda p: p.write_bytes(b"\xff" * 64),
    "brace.safetensors": lambda p: write_safetensors(p, b"{"),
    "beyond.safetensors": lambda p: write_safetensors(
        p, json.dumps({"a": {**SPEC, "shape": [2**40]}}).encode()
    ),
    "negative.safetensors": lambda p: write_safetensors(
        p, json.dumps({"a": {**SPEC, "shape": [-4]}}).encode()
    ),
    "pipe.pt": os.mkfifo,
    "escape.pt": lambda p: torch.save({"\x1b[2J\n": torch.zeros(1)}, p),
}


@pytest.mark.parametrize("name", FILES)
def test_weights_that_are_none_are_one_line(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    refused(name, small_network(), weights=tmp_path / name)


def test_a_torchscript_file_is_no_exported_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_torchscript(tmp_path / "script.pt2")
    (tmp_path / "text.pt2").write_text("hello")
    capfd.readouterr()
    refused("script.pt2", f"exported:{tmp_path / 'script.pt2'}", trust_model=True)
    refused("text.pt2", f"exported:{tmp_path / 'text.pt2'}", trust_model=True)
    assert capfd.readouterr().err == ""  # torch logs a traceback of its own


CONFIG = {
    "model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 16, "image_size": 32,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "patch_size": 16,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_hidden_layers": 10**9}, "1000000000"),
        ({"num_hidden_layers": 10**6}, "1,000,000"),
        ({"num_hidden_layers": -1}, "-1"),
        ({"hidden_size": -16}, "-16"),
        ({"hidden_size": 2**22, "intermediate_size": 2**22}, ()),
        ({"hidden_size": "sixteen"}, ()),
        ({"model_type": "nonsense"}, ()),
    ],
)
def test_a_config_that_asks_for_absurd_layers_is_refused(
    change: dict[str, Any], named: object, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    made = transformers.ViTForImageClassification(transformers.ViTConfig(**CONFIG, num_labels=3))
    made.save_pretrained(tmp_path, safe_serialization=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    refused(named, f"hf:{tmp_path}")


def test_a_head_that_the_weights_lack_would_be_random_and_is_refused(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    headless = transformers.ViTModel(transformers.ViTConfig(**CONFIG), add_pooling_layer=False)
    headless.save_pretrained(tmp_path, safe_serialization=True)
    refused(("2", "classifier.bias"), f"hf:{tmp_path}")
