"""Models as they come: ONNX, TorchScript and exported files, functions of NumPy, modules of two outputs."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from loaders.harness import evaluate, load_model
from loaders.harness.models.loading import open_models
from tests.imported import Imported
from tests.raising import mentions, raises
from tests.wordnet_splits.command import run
from wordnet_splits.base.errors import DataError, UnsafeDataError
from wordnet_splits.base.lazy import MissingPackageError

onnx = Imported("onnx", "pip install '.[onnx]'")
pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="pip install '.[onnx]'")

RNG = np.random.default_rng(0)
INNER = RNG.normal(size=(192, 5)).astype(np.float32)
OUTER = RNG.normal(size=(6, 5)).astype(np.float32)
ON_DIGITS: dict[str, Any] = {"groups": ["uniform"], "mean": 0, "std": 1, "device": "cpu"}


class Net(nn.Module):
    """The network of every file: its logits, or two outputs in the given order."""

    def __init__(self, outputs: str = "logits") -> None:
        super().__init__()
        self.inner, self.fc, self.outputs = (
            nn.Linear(192, 5, bias=False),
            nn.Linear(5, 6, bias=False),
            outputs,
        )
        self.inner.weight = nn.Parameter(torch.from_numpy(INNER.T.copy()))
        self.fc.weight = nn.Parameter(torch.from_numpy(OUTER))

    def forward(self, x: Tensor) -> Any:
        features = self.inner(x.flatten(1)).relu()
        by_name = {"features": features, "logits": self.fc(features)}
        outputs = tuple(by_name[name] for name in self.outputs.split())
        return outputs if len(outputs) > 1 else outputs[0]


def numpy_net(x: Any) -> Any:
    return np.maximum(np.asarray(x).reshape(len(x), -1) @ INNER, 0) @ OUTER.T


def write_onnx(
    path: Path, outputs: str = "logits", shape: Any = ("n", 3, 8, 8), *, softmax: bool = False, **more: Any
) -> str:
    """Write the network by hand, as an exporter would."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("MatMul", ["flat", "inner"], ["before"]),
        helper.make_node("Relu", ["before"], ["features"]),
        helper.make_node("Gemm", ["features", "outer"], ["logits"], transB=1),
        helper.make_node("Gemm", ["features", "outer"], ["auxiliary"], transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    names = ["probabilities"] if softmax else outputs.split()
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("images", more.get("kind", kind), shape)],
        [helper.make_tensor_value_info(name, kind, None) for name in names],
        [onnx.numpy_helper.from_array(INNER, "inner"), onnx.numpy_helper.from_array(OUTER, "outer")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=more.get("external", False), size_threshold=0, location="w")
    return str(path)


def write_mean(path: Path, shape: Any, axes: list[int]) -> str:
    """Write a network whose logits are the means of the three channels."""
    helper = onnx.helper
    nodes = [helper.make_node("ReduceMean", ["x"], ["logits"], axes=axes, keepdims=0)]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, 1, of_name)]
        for name, of_name in (("x", shape), ("logits", None))
    )
    graph = helper.make_graph(nodes, "mean", inputs, outputs)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


def write_torchscript(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(Net().eval(), torch.rand(2, 3, 8, 8)).save(str(path))
    return str(path)


@pytest.fixture(scope="module")
def expected() -> Any:
    return evaluate(Net(), "digits", "msp,knn[k=10]", groups=["uniform"], device="cpu")


def auroc(results: Any, detector: str = "msp") -> Any:
    return pytest.approx(
        results.values("auroc", group="uniform", detector=detector)["value"].tolist(), abs=1e-4
    )


@pytest.mark.parametrize(
    "options", [{}, {"outputs": "features logits"}, {"outputs": "logits features"}, {"shape": (4, 3, 8, 8)}]
)
def test_an_onnx_file_gives_what_its_network_gives(options: Any, tmp_path: Path, expected: Any) -> None:
    file = write_onnx(tmp_path / "net.onnx", **options)
    detectors = ["msp", "knn[k=10]"] if "outputs" in options else ["msp"]
    results = evaluate(file, "digits", detectors, **ON_DIGITS)
    for detector in detectors:
        assert results.values("auroc", group="uniform", detector=detector)["value"].tolist() == auroc(
            expected, detector
        )
    assert str(results.about.runs[0].weights) == file


def test_two_outputs_of_an_onnx_file_must_be_named(tmp_path: Path) -> None:
    file = write_onnx(tmp_path / "net.onnx", "logits auxiliary")
    with pytest.raises(DataError) as refused:
        load_model(file, device="cpu")
    assert refused.value.where == "onnx:net.onnx"


def test_images_come_last_where_the_onnx_input_says_so(tmp_path: Path) -> None:
    x = torch.rand(5, 3, 8, 8)
    model = load_model(Path(write_mean(tmp_path / "m.onnx", ("n", 8, 8, 3), [1, 2])), device="cpu")
    features, logits = model.forward(x)
    assert features is None
    torch.testing.assert_close(logits, x.mean((2, 3)))


def test_weights_beside_an_onnx_file_are_part_of_its_key(tmp_path: Path) -> None:
    file = write_onnx(tmp_path / "net.onnx", external=True)
    model = load_model(file, device="cpu")
    assert (tmp_path / "w").exists()
    x = torch.rand(3, 3, 8, 8)
    torch.testing.assert_close(model.forward(x)[1], Net()(x), rtol=1e-4, atol=1e-4)
    content = bytearray((tmp_path / "w").read_bytes())
    content[3] ^= 1
    (tmp_path / "w").write_bytes(content)
    assert load_model(file, device="cpu").key != model.key
    graph = onnx.load(file, load_external_data=False)
    graph.graph.initializer[0].external_data[0].value = "../w"
    onnx.save(graph, file)
    with raises(DataError, where=tmp_path):
        load_model(file, device="cpu")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"outputs": "features logits before"}, None),
        ({"outputs": "before features flat"}, ("3", "features", "logits")),
        ({"shape": ("n", 192)}, "192"),
        ({"shape": ("n", 1, 8, 8)}, ("1", "8")),
        ({"kind": 2}, "2"),
        ({"softmax": True}, "logits"),
    ],
)
def test_an_onnx_file_that_is_no_classifier_of_images_is_refused(
    options: Any, named: object, tmp_path: Path
) -> None:
    file = write_onnx(tmp_path / "net.onnx", **options)
    if named is None:  # three outputs, two of which have the names that say what they are
        assert load_model(file, device="cpu").forward(torch.rand(2, 3, 8, 8))[1].shape == (2, 6)
        return
    with raises(DataError, where="onnx:net.onnx", naming=named):
        load_model(file, device="cpu").prepare(torch.rand(4, 3, 8, 8))


def test_a_damaged_onnx_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no protobuf at all")
    with raises(DataError, where="onnx:net.onnx") as caught:
        load_model(tmp_path / "net.onnx")
    assert str(caught.value).isprintable()
    with raises(DataError, where="absent.onnx"):
        load_model(tmp_path / "absent.onnx")


def test_without_onnxruntime_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with raises(MissingPackageError, where="onnx:net.onnx", naming="onnxruntime"):
        load_model(write_onnx(tmp_path / "net.onnx"), device="cpu")


def test_size_and_normalisation_of_a_file_are_asked_for(tmp_path: Path) -> None:
    file = write_onnx(tmp_path / "net.onnx")
    for options in ({}, {"transform": "resize-8"}):
        with pytest.raises(DataError) as caught:
            evaluate(file, "digits", "msp", groups=["uniform"], **options)
        assert caught.value.where == "onnx:net.onnx"
    for width, hint in ((24, "resize-24"), (8, "MODULE:FUNCTION")):
        larger = write_mean(tmp_path / "large.onnx", ("n", 3, 24, width), [2, 3])
        with raises(DataError, naming=("24", width, "8", hint)):
            evaluate(larger, "digits", "msp", **ON_DIGITS)
    results = evaluate(
        file, "digits", "msp", **{**ON_DIGITS, "mean": [0.1, 0.2, 0.3], "transform": "resize-8"}
    )
    (transform,) = results.about.runs[0].transforms.values()
    assert transform == "evaluation resize-8, mean 0.1 0.2 0.3, std 1 1 1"


def test_a_model_with_its_own_preprocessing_takes_no_other_normalisation() -> None:
    from loaders.harness.models.transforms import evaluation_transform

    model = load_model(Net(), device="cpu", preprocess=evaluation_transform("none"), mean=0, std=1)
    with raises(DataError, where="Net"):
        evaluate(model, "digits", "msp", groups=["uniform"])


def test_programs_are_known_by_their_files_and_need_trust(tmp_path: Path, expected: Any) -> None:
    exported = torch.export.export(Net().eval(), (torch.rand(4, 3, 8, 8),))
    torch.export.save(exported, tmp_path / "net.pt2")
    files = [write_torchscript(tmp_path / name) for name in ("net.pt", "net.ts")]
    for file in (*files, str(tmp_path / "net.pt2")):
        with raises(UnsafeDataError, naming="--trust-model"):
            load_model(file)
        results = evaluate(file, "digits", "msp", trust_model=True, **ON_DIGITS)
        assert results.values("auroc", group="uniform", detector="msp")["value"].tolist() == auroc(expected)


def test_weights_alone_ask_for_their_network(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(dict(Net().state_dict()), tmp_path / "net.safetensors")
    torch.save(Net().state_dict(), tmp_path / "net.pth")
    for name in ("net.safetensors", "net.pth"):
        with pytest.raises(DataError):
            load_model(str(tmp_path / name))
        blank = Net()
        nn.init.zeros_(blank.fc.weight)
        loaded = load_model(blank, weights=tmp_path / name, device="cpu")
        torch.testing.assert_close(loaded.forward(torch.ones(2, 3, 8, 8))[1], Net()(torch.ones(2, 3, 8, 8)))
    (tmp_path / "net.txt").write_text("x")
    with raises(DataError, where="net.txt"):
        load_model(str(tmp_path / "net.txt"))


class OfAnotherLibrary:
    """An array as JAX's: neither NumPy's nor torch's, and read-only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.array.flags.writeable = False
        return self.array


@pytest.mark.parametrize(
    "function",
    [
        numpy_net,
        lambda x: OfAnotherLibrary(numpy_net(x)),
        lambda x: (numpy_net(x)[:, :5], OfAnotherLibrary(numpy_net(x))),
        lambda x: {"logits": numpy_net(x)},
        lambda x: Net()(x),
    ],
)
def test_a_function_gives_arrays_of_any_library_and_needs_no_id(function: Any, expected: Any) -> None:
    results = evaluate(function, "digits", "msp", groups=["uniform"], device="cpu")
    assert results.values("auroc", group="uniform", detector="msp")["value"].tolist() == auroc(expected)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: numpy_net(x).tolist(), ()),
        (lambda x: np.array(["a"] * len(x)), ()),
        (lambda x: numpy_net(x) * np.nan, ()),
        (lambda x: numpy_net(x)[0], "6"),
        (
            lambda x: (numpy_net(x), numpy_net(x)[:, :5]),
            "6",
        ),
    ],
)
def test_what_a_function_may_not_return_is_one_line(function: Any, named: object) -> None:
    with raises(DataError, where="<lambda>", naming=named) as caught:
        evaluate(function, "digits", "msp", groups=["uniform"], device="cpu")
    assert str(caught.value).isprintable()


def test_two_functions_are_two_models(tmp_path: Path) -> None:
    models = {"a": lambda x: numpy_net(x), "b": lambda x: -numpy_net(x)}
    results = evaluate(models, "digits", "msp", groups=["uniform"], device="cpu")
    assert list(results.about.models) == ["a", "b"]
    keys = [run_facts.model_key for run_facts in results.about.runs]
    assert len(set(keys)) == 2
    again = evaluate(models, "digits", "msp", groups=["uniform"], device="cpu")
    assert [run_facts.model_key for run_facts in again.about.runs] == keys  # of their outputs
    with raises(DataError, where="<lambda>", naming="--model-id"):
        evaluate(models, "digits", "msp", groups=["uniform"], device="cpu", store=tmp_path)
    stored = evaluate(
        models, "digits", "msp", groups=["uniform"], store=tmp_path, model_id="v1", device="cpu"
    )
    assert [r.name for r in stored.about.runs] == ["v1 a", "v1 b"]
    assert stored.scores.equals(results.scores)


def test_detectors_that_need_gradients_are_refused_or_left_out(tmp_path: Path) -> None:
    for model in (numpy_net, write_onnx(tmp_path / "net.onnx")):
        with raises(DataError, naming="odin"):
            evaluate(model, "digits", "odin", **ON_DIGITS)
    results = evaluate(numpy_net, "digits", "msp,preset:openood", **ON_DIGITS)
    notes = " ".join(results.about.notes)
    assert "odin is left out: it needs gradients of the logits" in notes
    assert "knn is left out: it needs features, and this model gives logits alone" in notes


def test_the_command_line_takes_a_file_and_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from loaders.harness.cli.main import app

    monkeypatch.chdir(tmp_path)
    write_onnx(Path("net.onnx"))
    Path("linear_functions.py").write_text(
        "import numpy as np\n"
        "def one(x): return np.asarray(x).reshape(len(x), -1)[:, :6] * 2.0\n"
        "def two(x): return np.asarray(x).reshape(len(x), -1)[:, 60:66] * 2.0\n"
    )
    words = ["run", "--benchmark", "digits", "--group", "uniform", "--detectors", "msp", "--device", "cpu"]
    words += ["--model", "net.onnx", "--model", "linear_functions:one", "--model", "linear_functions:two"]
    code = run(app, [*words, "--mean", "0", "--std", "1"], "unknown-eval")
    shown, said = capsys.readouterr()
    assert code == 0, said
    assert all(f"Model {name}" in shown for name in ("onnx:net.onnx", "linear_functions:one"))
    code = run(app, words, "unknown-eval")
    said = capsys.readouterr().err
    assert (code, mentions(said, "--mean", "--std")) == (2, True), said


def test_files_of_one_name_in_two_folders_are_two_models(tmp_path: Path) -> None:
    files = []
    for name, outputs in (("a", "logits"), ("b", "features logits")):
        (tmp_path / name).mkdir()
        files.append(write_onnx(tmp_path / name / "net.onnx", outputs))
    models = open_models(files, device="cpu")
    assert list(models) == ["onnx:net.onnx", files[1]]
    with raises(DataError, where="--model", naming="net.onnx"):
        open_models([files[0], files[0]], device="cpu")


@pytest.mark.extensions("loaders.harness.deployment")
def test_a_detector_of_an_onnx_file_is_exported_and_one_of_an_unnamed_function_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from loaders.harness.cli.main import app

    monkeypatch.chdir(tmp_path)
    results = evaluate(write_onnx(Path("net.onnx")), "digits", "msp", transform="resize-8", **ON_DIGITS)
    shipped = results.export_detector("msp", false_alarms=0.1)
    results.write("results")
    words = ["export-detector", "results", "--detector", "msp", "--false-alarms", "0.1", "--out", "again"]
    code = run(app, [*words, "--transform", "resize-8", "--mean", "0", "--std", "1"], "unknown-eval")
    assert code == 0, capsys.readouterr().err
    assert shipped.description.network.spec == "net.onnx"
    with raises(DataError, where="numpy_net"):
        evaluate(numpy_net, "digits", "msp", **ON_DIGITS).export_detector("msp")
    named = evaluate(numpy_net, "digits", "msp", model_id="v1", **ON_DIGITS)
    assert named.export_detector("msp", false_alarms=0.1).description.network.key


def test_numpy_and_a_gpu_are_told_apart() -> None:
    def function(images: Any) -> Any:
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy")

    model = load_model(function, device="cpu")
    with raises(DataError, where="function", naming=("meta", "cpu")):
        model.forward(torch.zeros(2, 3, 8, 8, device="meta"))
    with pytest.raises(TypeError):
        model.forward(torch.zeros(2, 3, 8, 8))
