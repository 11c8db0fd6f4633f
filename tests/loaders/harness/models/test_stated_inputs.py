"""The normalisation of a model's inputs and its classes: stated by the user, the model or the benchmark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders import UnknownDetectionSet
from loaders.harness import evaluate
from loaders.harness.models.class_map import Label, LabelSpace
from loaders.harness.models.loading import load_model
from loaders.harness.models.model import ASSUMED_PIXELS, CHECK_TRANSFORM, ONE_CHANNEL, Model
from loaders.harness.models.sources.published import TRANSFORM_INPUT
from loaders.harness.models.transforms import (
    Normalise,
    choose_transform,
    evaluation_transform,
    input_transform,
)
from tests.selection import cases
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.manifest.metadata import Channels, Declared

from .networks import small_network

X = torch.rand(4, 3, 8, 8)
IMAGENET, HALF = Normalise((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), Normalise((0.5,) * 3, (0.5,) * 3)
DECLARED = Declared(name="declares", normalise=Channels(mean=[0.1, 0.2, 0.3], sd=[0.5, 0.6, 0.7]))
SILENT = Declared(name="silent")
ON_DIGITS: dict[str, Any] = {"groups": ["uniform"], "device": "cpu"}
CPU: dict[str, Any] = {"device": "cpu", "trust_model": True}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_inputs.py").write_text(
        "from torch import nn\n"
        "def net(): return nn.Sequential(nn.Flatten(), nn.Linear(192, 6))\n"
        "def function(x): return x.flatten(1)[:, :6]\n"
    )
    monkeypatch.chdir(tmp_path)


def hf_network(names: list[str]) -> Any:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8,
        patch_size=4, id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)},
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.ViTForImageClassification(config)


def hf_folder(path: str, names: list[str], *, processor: bool) -> str:
    hf_network(names).save_pretrained(path, safe_serialization=True)
    if processor:
        transformers = pytest.importorskip("transformers")
        transformers.ViTImageProcessor(size={"height": 8, "width": 8}).save_pretrained(path)
    return f"hf:{path}"


def weights_of(network: nn.Module) -> str:
    torch.save(network.state_dict(), "net.pth")
    return "net.pth"


def quiet(write: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write()


def onnx_file() -> Model:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 6)).eval()
    quiet(lambda: torch.onnx.export(net, (X,), "net.onnx", verbose=False, dynamo=False))
    return load_model("net.onnx", **CPU)


def exported() -> Model:
    torch.export.save(torch.export.export(small_network().eval(), (X,)), "net.pt2")
    return load_model("net.pt2", **CPU)


def torchscript() -> Model:
    quiet(lambda: torch.jit.trace(small_network().eval(), X).save("net.ts"))
    return load_model("net.ts", **CPU)


def timm_weights() -> Model:
    timm = pytest.importorskip("timm")
    file = weights_of(timm.create_model("test_resnet", num_classes=6))
    return load_model("timm:test_resnet", weights=file, device="cpu")


def torchvision_weights() -> Model:
    from torchvision.models import mobilenet_v3_small

    file = weights_of(mobilenet_v3_small(num_classes=6))
    return load_model("torchvision:mobilenet_v3_small", weights=file, device="cpu")


NAMED: dict[str, Callable[[], Model]] = {
    "onnx": onnx_file,
    "exported": exported,
    "torchscript": torchscript,
    "a module by name": lambda: load_model("my_inputs:net", device="cpu"),
    "a function by name": lambda: load_model("my_inputs:function", device="cpu"),
    "hf without a processor": lambda: load_model(hf_folder("h", [*"abcdef"], processor=False), device="cpu"),
    "timm with a file": timm_weights,
    "torchvision with a file": torchvision_weights,
}


@pytest.mark.fuzz
@pytest.mark.parametrize("form", cases(NAMED, always="a module by name"))
def test_a_named_model_without_a_normalisation_is_asked_for_it(form: str) -> None:
    model = NAMED[form]()
    for refused in (
        lambda: choose_transform(model, UnknownDetectionSet("digits", role="near")),
        lambda: input_transform(model, "resize-8"),
        lambda: input_transform(model, "none", SILENT),
    ):
        with pytest.raises(DataError) as caught:
            refused()
        assert caught.value.where == model.name
    declared = evaluation_transform("none", DECLARED.normalise.mean, DECLARED.normalise.sd)
    assert input_transform(model, "none", DECLARED).key == declared.key
    model.normalise = Normalise((0.5,) * 3, (0.25,) * 3)
    given = choose_transform(model, UnknownDetectionSet("digits", role="near"))
    assert given.key == evaluation_transform("none", (0.5,) * 3, (0.25,) * 3).key
    assert input_transform(model, "none", DECLARED).key == given.key


def test_the_command_line_asks_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from loaders.harness.cli.main import app
    from tests.wordnet_splits.command import run

    words = ["run", "--benchmark", "digits", "--model", "my_inputs:net", "--detectors", "msp"]
    assert run(app, [*words, "--group", "uniform", "--device", "cpu"], "unknown-eval") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def scripted() -> Any:
    found: list[Any] = []
    quiet(lambda: found.append(torch.jit.trace(small_network().eval(), X)))
    return found[0]


OBJECTS: dict[str, Callable[[], Any]] = {
    "module": small_network,
    "function": lambda: lambda x: x.flatten(1)[:, :6],
    "scripted": scripted,
    "hf": lambda: hf_network([*"012345"]),
}


@pytest.mark.fuzz
@pytest.mark.parametrize("form", cases(OBJECTS, always="module"))
def test_an_object_gets_pixels_and_its_results_say_so(form: str) -> None:
    made = OBJECTS[form]()
    silent = evaluate(made, "digits", "msp", **ON_DIGITS)
    said = evaluate(made, "digits", "msp", mean=0, std=1, **ON_DIGITS)
    assert any(note.endswith(ASSUMED_PIXELS) for note in silent.about.notes)
    assert not any(note.endswith(ASSUMED_PIXELS) for note in said.about.notes)
    assert silent.scores.equals(said.scores)


def test_the_note_is_of_the_transform_and_outlives_stored_activations(tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    given = evaluation_transform("none", (0.5,) * 3, (0.5,) * 3)
    for transform, noted in ((None, True), (None, True), (given, False), (None, True)):
        results = evaluate(
            model, "digits", "msp", groups=["uniform"], store=tmp_path / "store", transform=transform
        )
        assert any(note.endswith(ASSUMED_PIXELS) for note in results.about.notes) == noted


def test_own_sets_with_a_named_transform_follow_the_same_rule() -> None:
    images = UnknownDetectionSet("digits", split="test", role="id")
    sets = {"id": images, "near": UnknownDetectionSet("digits", split="test", role="near")}
    options: dict[str, Any] = {"sets": sets, "detectors": "msp", "transform": "resize-8", "device": "cpu"}
    with pytest.raises(DataError) as caught:
        evaluate("my_inputs:net", **options)
    assert caught.value.where == "my_inputs:net"
    named = evaluate("my_inputs:net", mean=0, std=1, **options)
    assert not any(note.endswith(ASSUMED_PIXELS) for note in named.about.notes)
    assumed = evaluate(small_network(), **options)
    assert any(note.endswith(ASSUMED_PIXELS) for note in assumed.about.notes)
    del options["device"]
    models = {m: load_model(small_network(), device="cpu", mean=m, std=1) for m in (0, 0.5)}
    with pytest.raises(DataError) as caught:
        evaluate(models, **options)
    assert caught.value.where == "evaluate"


def timm_object() -> Any:
    return pytest.importorskip("timm").create_model("test_resnet")


STATED: dict[str, tuple[Callable[[], Model], Normalise]] = {
    "timm by name": (lambda: load_model("timm:test_resnet", weights="random", device="cpu"), HALF),
    "timm object": (lambda: load_model(timm_object(), device="cpu"), HALF),
    "timm object, compiled": (lambda: load_model(torch.compile(timm_object()), device="cpu"), HALF),
    "timm object, parallel": (lambda: load_model(nn.DataParallel(timm_object()), device="cpu"), HALF),
    "torchvision": (
        lambda: load_model("torchvision:mobilenet_v3_small", weights="random", device="cpu"),
        IMAGENET,
    ),
    "hf": (
        lambda: load_model(hf_folder("h", [*"abcdef"], processor=True), device="cpu"),
        HALF,
    ),
}


@pytest.mark.fuzz
@pytest.mark.parametrize("form", cases(STATED, always="hf"))
def test_what_a_model_states_comes_before_the_benchmark(form: str) -> None:
    load, normalise = STATED[form]
    model = load()
    assert model.own_normalise == normalise
    assert choose_transform(model, UnknownDetectionSet("digits", role="near")) is model.preprocess
    for recipe in (SILENT, DECLARED, None):
        named = input_transform(model, "resize-16", recipe)
        assert named.key == evaluation_transform("resize-16", normalise.mean, normalise.std).key


def test_a_processor_that_does_more_than_normalise_states_no_normalisation() -> None:
    transformers = pytest.importorskip("transformers")
    hf_network([*"abcdef"]).save_pretrained("h", safe_serialization=True)
    for options in ({"do_rescale": False}, {"rescale_factor": 1 / 127.5}):
        size = {"height": 8, "width": 8}
        transformers.ViTImageProcessor(size=size, **options).save_pretrained("h")
        model = load_model("hf:h", device="cpu")
        assert (model.preprocess is None, model.own_normalise) == (False, None)


def test_a_timm_object_with_another_head_or_weights_of_a_file_states_nothing() -> None:
    timm = pytest.importorskip("timm")
    other_head = load_model(timm.create_model("test_resnet", num_classes=6), device="cpu")
    loaded = load_model(timm_object(), weights=weights_of(timm_object()), device="cpu")
    without_head = load_model(timm.create_model("test_resnet", features_only=True), device="cpu")
    for model in (other_head, loaded, without_head):
        assert (model.preprocess, model.own_normalise, model.classes) == (None, None, None)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", cases(["googlenet", "inception_v3"], always="googlenet"))
def test_inputs_are_transformed_as_with_the_published_weights(name: str) -> None:
    torchvision = pytest.importorskip("torchvision")
    builder = getattr(torchvision.models, name)
    published = builder(weights=None, init_weights=False, transform_input=True).eval()
    file = weights_of(published)
    x = torch.rand(2, 3, 96, 96) * 4 - 2
    found = {}
    for given in (None, True, False):
        options = {"init_weights": False} | ({} if given is None else {"transform_input": given})
        model = load_model(f"torchvision:{name}", weights=file, options=options, device="cpu")
        assert (TRANSFORM_INPUT in model.notes) == (given is None)
        with torch.no_grad():
            found[given] = model.module.eval()(x), model.key
    with torch.no_grad():
        torch.testing.assert_close(found[None][0], published(x))
    assert found[None][1] == found[True][1] != found[False][1]
    assert not torch.equal(found[False][0], found[True][0])


def space_of(*names: str) -> LabelSpace:
    return LabelSpace(tuple(Label(name, name) for name in names), {})


@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize(
    ("names", "labels", "columns"),
    [
        (["5", "4", "3", "2", "1", "0"], "0 1 2 3 4 5", (5, 4, 3, 2, 1, 0)),
        (["0", "1", "2", "10"], "0 1 10 2", (0, 1, 3, 2)),  # labels in the order of text
        (["0", "1", "10", "2"], "0 1 2 10", (0, 1, 3, 2)),  # columns in the order of text
        (["0", "1", "2"], "ant bee cow", (0, 1, 2)),  # numbers of columns
        (["1", "2", "3"], "ant bee cow", (0, 1, 2)),
        (["2", "1", "0"], "ant bee cow", None),  # numbers of classes unknown here
        (["LABEL_0", "LABEL_1", "LABEL_2"], "2 1 0", (0, 1, 2)),
        (["cow", "ant", "bee"], "ant bee cow", (1, 2, 0)),
    ],
)
def test_numerals_are_class_names_where_classes_are_numbers(
    names: list[str], labels: str, columns: tuple[int, ...] | None, in_python: bool
) -> None:
    network = hf_network(names)
    if not in_python:
        network.save_pretrained("h", safe_serialization=True)
    model = load_model(network if in_python else "hf:h", device="cpu")
    space = space_of(*labels.split())
    if columns is None:
        with pytest.raises(DataError) as caught:
            model.class_map(space, len(names))
        assert caught.value.where == model.name
    else:
        assert model.class_map(space, len(names)).columns == columns


def test_a_timm_object_keeps_the_names_of_its_labels() -> None:
    network = timm_object()
    by_name = load_model(network, device="cpu").classes
    assert by_name is not None
    assert (len(by_name), by_name[0], by_name[999]) == (1000, "n01440764", "n15075141")
    network = pytest.importorskip("timm").create_model("test_resnet", num_classes=3)
    network.pretrained_cfg = {**network.pretrained_cfg, "num_classes": 3, "label_names": ["c", "a", "b"]}
    model = load_model(network, device="cpu")
    assert model.class_map(space_of("a", "b", "c"), 3).columns == (1, 2, 0)


@pytest.mark.parametrize(
    ("network", "hint"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 6)), ONE_CHANNEL),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(9, 6)), ONE_CHANNEL),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 6)), ONE_CHANNEL),
        (lambda x: x.flatten(1) @ torch.ones(64, 6), ONE_CHANNEL),
        (nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(9, 6)), CHECK_TRANSFORM),
        (nn.Sequential(nn.Flatten(), nn.Linear(3 * 224 * 224, 6)), CHECK_TRANSFORM),
    ],
)
def test_a_network_of_one_channel_is_told_from_one_of_another_size(network: Any, hint: str) -> None:
    with pytest.raises(DataError) as caught:
        load_model(network, device="cpu").prepare(X)
    assert caught.value.hint == hint


@pytest.mark.parametrize("config", ["[]", "{", '{"image_processor_type": "TimmWrapperImageProcessor"}'])
def test_a_malformed_processor_is_asked_for(config: str) -> None:
    name = hf_folder("h", [*"abcdef"], processor=False)
    Path("h", "preprocessor_config.json").write_text(config)
    model = load_model(name, device="cpu")
    with pytest.raises(DataError) as caught:
        input_transform(model, "resize-8")
    assert caught.value.where == model.name


def test_class_names_of_other_columns_are_refused() -> None:
    network = hf_network([*"abcdef"])
    network.config.id2label = dict(enumerate("abcdef", 1))
    with pytest.raises(DataError) as caught:
        load_model(network, device="cpu")
    assert caught.value.where == "config.json"


def timm_network(**stated: Any) -> Any:
    timm = pytest.importorskip("timm")
    return timm.create_model(
        "test_resnet", num_classes=6, pretrained_cfg_overlay={"num_classes": 6, **stated}
    )


def test_a_timm_object_without_a_mean_states_no_normalisation() -> None:
    assert load_model(timm_network(), device="cpu").own_normalise == HALF
    model = load_model(timm_network(mean=None, std=None), device="cpu")
    assert (model.own_normalise, model.preprocess) == (None, None)


@pytest.mark.parametrize("stated", [{"mean": 0.1, "std": 0.9}, {"interpolation": "nosuch"}])
def test_a_malformed_configuration_of_timm_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        load_model(timm_network(**stated), device="cpu")
    assert caught.value.where == "pretrained_cfg"
