"""State dicts as they are saved: behind wrappers, averaged, without counters, several in a file."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim.swa_utils import AveragedModel

from loaders.harness.extraction.extractor import Extractor
from loaders.harness.models.loading import load_model
from loaders.harness.models.origin import WeightsOrigin
from loaders.harness.models.weights import build_with_weights, load_weights, read_state
from wordnet_splits.base.errors import DataError, UnknownNameError


class Net(nn.Module):
    def __init__(self, seed: int = 1, num_classes: int = 6) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, num_classes)

    def forward(self, x: Any) -> Any:
        return self.fc(self.bn(self.conv(x)).mean((2, 3)))


SAVED = Net(0)
STATE = SAVED.state_dict()


def behind(prefix: str, state: Any = STATE) -> dict[str, Any]:
    return {f"{prefix}{name}": value for name, value in state.items()}


FORMS: dict[str, Any] = {
    "plain": STATE,
    "compiled, parallel": behind("_orig_mod.module."),
    "parallel, compiled": behind("module._orig_mod."),
    "model": behind("model."),
    "net": behind("net."),
    "deep": behind("trainer.model."),
    "lightning": {"state_dict": behind("model."), "epoch": 3, "optimizer_states": [{"state": {}}]},
    "averaged": AveragedModel(SAVED).state_dict(),
    "compiled average": behind("_orig_mod.", AveragedModel(SAVED).state_dict()),
    "without counters": {name: value for name, value in STATE.items() if "num_batches" not in name},
    "a compiled part": {name.replace("bn.", "bn._orig_mod."): value for name, value in STATE.items()},
    "sharded": behind("_fsdp_wrapped_module."),
    "under another key": {"student": STATE, "epoch": 3},
    "half": {name: value.half() if value.is_floating_point() else value for name, value in STATE.items()},
}
NETWORKS: dict[str, Callable[[], Any]] = {
    "bare": Net,
    "parallel": lambda: nn.DataParallel(Net()),
    "inside": lambda: nn.ModuleDict({"model": Net()}),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("form", FORMS)
def test_wrappers_of_either_side_make_no_difference(form: str, network: str, tmp_path: Path) -> None:
    torch.save(FORMS[form], tmp_path / "w.pt")
    module = load_weights(NETWORKS[network](), read_state(tmp_path / "w.pt"), "w.pt")
    for name, value in module.state_dict().items():
        expected = next(tensor for key, tensor in STATE.items() if name.endswith(key))
        if "num_batches" not in name:
            torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-3)


def test_a_network_is_built_to_fit_weights_behind_a_wrapper() -> None:
    state = behind("_orig_mod.module.", Net(0, num_classes=9).state_dict())
    assert build_with_weights(lambda **o: Net(**o), state, {}, "w.pt").fc.out_features == 9


REFUSED: dict[str, Any] = {
    "a tensor is missing": {name: value for name, value in STATE.items() if name != "fc.bias"},
    "a tensor is left over": {**STATE, "criterion.weight": torch.ones(1)},
    "a network and its average": behind("model.") | behind("ema."),
    "with and without a wrapper": STATE | behind("module."),
    "quantised": {**STATE, "fc.weight": STATE["fc.weight"].to(torch.int8)},
    "another prefix of a part": {**STATE, "model.fc.bias": STATE["fc.bias"]},
}


@pytest.mark.parametrize("form", REFUSED)
def test_other_differences_are_refused(form: str) -> None:
    with pytest.raises(DataError) as caught:
        load_weights(Net(), REFUSED[form], "w.pt")
    assert caught.value.where == "w.pt"


def test_the_origin_of_weights_is_that_of_loading(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    torch.save(STATE, file)
    model = load_model(Net(), weights=file, device="cpu")
    file.unlink()
    assert Extractor(model).run().weights == WeightsOrigin(kind="file", weights=str(file))


class OfPython2(pickle._Pickler):  # type: ignore[name-defined]
    """Writes text as the byte strings of Python 2."""

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_text(self: Any, text: str) -> None:
        self.write(pickle.SHORT_BINSTRING + bytes([len(text)]) + text.encode())
        self.memoize(text)

    dispatch[str] = save_text


def test_a_checkpoint_as_that_of_places365_is_read(tmp_path: Path) -> None:
    """Of Python 2.7 and PyTorch 0.2, DataParallel, no counters of batches, and `.tar` in its name."""
    torchvision = pytest.importorskip("torchvision")
    network = torchvision.models.resnet18(num_classes=365).eval()
    state = {f"module.{k}": v for k, v in network.state_dict().items() if "num_batches" not in k}
    python2 = ModuleType("pickle")
    python2.Pickler = OfPython2  # type: ignore[attr-defined]
    python2.dump = lambda value, file, protocol: OfPython2(file, protocol).dump(value)  # type: ignore[attr-defined]
    path = tmp_path / "resnet18_places365.pth.tar"
    content = {"epoch": 90, "arch": "resnet18", "state_dict": state, "best_prec1": torch.tensor([54.0])}
    torch.save(content, path, pickle_module=python2, pickle_protocol=2, _use_new_zipfile_serialization=False)
    assert b"U\x13module.conv1.weight" in path.read_bytes()
    loaded = load_model("torchvision:resnet18", weights=str(path), device="cpu", mean=0, std=1)
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(loaded.module.eval()(x), network(x))


def test_one_of_several_state_dicts_is_named(tmp_path: Path) -> None:
    file = tmp_path / "all.pth"
    states = {name: Net(seed).state_dict() for seed, name in enumerate(("model", "ema", "state_dict"))}
    torch.save({**states, "epoch": 3, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}, file)
    with pytest.raises(DataError) as caught:
        load_model(Net(), weights=file, device="cpu")
    assert caught.value.where == str(file)
    for name, state in states.items():
        model = load_model(Net(), weights=f"{file}#{name}", device="cpu")
        assert torch.equal(model.module.fc.weight, state["fc.weight"])
        assert (model.origin.kind, model.origin.weights) == ("file", f"{file}#{name}")
    with pytest.raises(UnknownNameError) as caught:
        load_model(Net(), weights=f"{file}#emma", device="cpu")
    assert (caught.value.where, caught.value.near) == (str(file), ("ema",))
    timm = pytest.importorskip("timm")
    of_timm = timm.create_model("test_resnet", num_classes=5).state_dict()
    torch.save({"model": of_timm, "model_ema": of_timm}, file)
    fitted = load_model("timm:test_resnet", weights=f"{file}#model_ema", device="cpu")
    assert fitted.module.num_classes == 5


@pytest.mark.parametrize("key", ["checkpoint.model", "checkpoint/model"])
def test_a_state_dict_inside_dicts_is_named(key: str, tmp_path: Path) -> None:
    file = tmp_path / "nested.pth"
    nested: dict[str, Any] = {
        "checkpoint": {"model": STATE},
        "optimizer": {"state": {0: {"exp_avg": STATE["fc.bias"]}}},
    }
    torch.save(nested, file)
    assert read_state(file).keys() == read_state(f"{file}#{key}").keys() == STATE.keys()
    nested["checkpoint"]["ema"] = Net(1).state_dict()
    torch.save(nested, file)
    assert torch.equal(read_state(f"{file}#{key}")["fc.weight"], STATE["fc.weight"])
    with pytest.raises(DataError) as refused:
        read_state(file)
    assert refused.value.where == str(file)
    with pytest.raises(UnknownNameError) as unknown:
        read_state(f"{file}#checkpoint.modle")
    assert unknown.value.near[0] == "checkpoint.model"


def test_one_of_two_networks_in_a_flat_state_dict_is_named(tmp_path: Path) -> None:
    file = tmp_path / "distilled.pth"
    torch.save({**behind("student."), **behind("teacher.", Net(1).state_dict())}, file)
    with pytest.raises(DataError) as refused:
        load_model(Net(), weights=file, device="cpu")
    assert "FILE#student or FILE#teacher" in str(refused.value.hint)
    model = load_model(Net(3), weights=f"{file}#student", device="cpu")
    assert torch.equal(model.module.fc.weight, STATE["fc.weight"])
    with pytest.raises(UnknownNameError) as unknown:
        read_state(f"{file}#studnt")
    assert unknown.value.near[0] == "student"


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize(
    "content",
    [
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
        b"\n<!DOCTYPE html><html></html>",
        b"<html></html>",
        gzip.compress(b"weights", mtime=0),
    ],
)
def test_a_file_in_the_place_of_weights_is_data_not_unsafe(
    content: bytes, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"net{suffix}"
    file.write_bytes(content)
    with pytest.raises(DataError) as refused:
        read_state(file)
    assert (refused.value.kind, refused.value.where) == ("data", str(file))


PARTS = st.lists(st.sampled_from(["module", "_orig_mod", "model", "conv", "bn", "0"]), max_size=3)


def inserted(name: str, parts: list[str], position: int) -> str:
    """Return a name with more parts before the part at a position."""
    pieces = name.split(".")
    return ".".join((*pieces[:position], *parts, *pieces[position:]))


@pytest.mark.fuzz
@pytest.mark.always
@settings(max_examples=60, deadline=None)
@given(PARTS, PARTS, st.integers(0, 1), st.sets(st.sampled_from([*STATE, "n_averaged"]), max_size=2))
def test_a_tensor_is_loaded_in_its_own_place_or_not_at_all(
    outer: list[str], inner: list[str], position: int, dropped: set[str]
) -> None:
    names = {"n_averaged": torch.tensor(3), **STATE}
    state = {
        inserted(inserted(name, inner, position) if name.startswith("bn") else name, outer, 0): value
        for name, value in names.items()
        if name not in dropped
    }
    network = Net()
    try:
        load_weights(network, state, "w.pt")
    except DataError:
        return
    assert not {name for name in dropped if "num_batches" not in name} & set(STATE)
    for name, value in network.state_dict().items():
        if name not in dropped:
            assert torch.equal(value, STATE[name]), name
