"""Sets of a user's own: arrays, datasets and loaders in place of a benchmark."""

from __future__ import annotations

import html
import importlib
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow.compute as pc
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from wordnet_splits.base.errors import DataError, SplitsError

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402 - after importorskip
from torch.utils.data import DataLoader, Subset, TensorDataset  # noqa: E402 - after importorskip

from loaders import UnknownDetectionSet, evaluate, evaluate_arrays  # noqa: E402 - after importorskip
from loaders.harness import check_results  # noqa: E402 - after importorskip
from loaders.harness.cli.main import app  # noqa: E402 - after importorskip
from tests.raising import mentions, raises  # noqa: E402 - after importorskip
from wordnet_splits.base.terminal.runner import run  # noqa: E402 - after importorskip

K = 6


def logits(n: int, seed: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=scale, size=(n, K)).astype(np.float32)


def labels(n: int) -> np.ndarray:
    return np.arange(n) % K


def arrays(**more):
    sets = {
        "id": {"logits": logits(60, 0, 4), "features": logits(60, 1), "labels": labels(60)},
        "near": {"logits": logits(40, 2), "features": logits(40, 3)},
        "far:noise": {"logits": logits(30, 4), "features": logits(30, 5), "labels": labels(30) % 2},
        "id/train": {"logits": logits(90, 6), "features": logits(90, 7), "labels": labels(90)},
    }
    return {**sets, **more}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, K))


def pictures(n: int, seed: int, *, labelled: bool = True) -> TensorDataset:
    images = torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(images, torch.from_numpy(labels(n))) if labelled else TensorDataset(images)


def sets(**more):
    return {"id": pictures(60, 0), "near": pictures(40, 1, labelled=False), **more}


def other_notes(found):
    """Return the notes but for those on accuracy: these networks are not trained."""
    return [note for note in found.about.notes if "no better than guessing" not in note]


def test_arrays_give_what_scikit_learn_computes_of_them():
    given = arrays()
    found = evaluate_arrays(given, "msp,knn[k=5]")
    softmax = {
        name: torch.from_numpy(given[name]["logits"]).double().softmax(1).max(1).values.numpy()
        for name in ("id", "near", "far:noise")
    }
    for name, group in (("near", "near"), ("far:noise", "noise")):
        truth = np.repeat([1, 0], [60, len(softmax[name])])
        expected = roc_auc_score(truth, np.concatenate([softmax["id"], softmax[name]]))
        assert found.values("auroc", group=group, detector="msp")["value"].tolist() == pytest.approx(
            [expected], abs=1e-12
        )
    right = (given["id"]["logits"].argmax(1) == given["id"]["labels"]).mean()
    assert found.values("accuracy", group="(pooled)", detector="msp")["value"].tolist() == pytest.approx(
        [right]
    )
    assert (
        found.values("auroc", group="noise", detector="knn[k=5]")["value"].tolist()
        != found.values("auroc", group="noise", detector="msp")["value"].tolist()
    )
    classes = {(row["group"], row["class_id"]) for row in found.by_class.to_pylist()}
    assert classes == {("near", "all"), ("noise", "0"), ("noise", "1")}


def of_arrays():
    return evaluate_arrays(arrays(), "msp,energy")


def of_sets():
    return evaluate(network(), sets=sets(), detectors="msp,energy")


@pytest.mark.parametrize("made", [of_arrays, of_sets])
@pytest.mark.extensions("loaders.harness.report")
def test_results_on_ones_own_sets_are_shown_as_any_others(made, tmp_path):
    found = made()
    near = f"{100 * found.values('auroc', group='near', detector='energy')['value'].tolist()[0]:.2f}"
    for shown in (found.table(width=60), str(found), found._repr_html_()):
        assert near in shown
    assert set(found.to_pandas()["detector"]) >= {"msp", "energy"}
    assert found.plot.roc(tmp_path / "roc.svg").read_bytes().startswith(b"<?xml")
    (panel,) = found.plot.risk_coverage().panels
    assert len(panel.lines) == 2


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"idd": {"logits": logits(3, 0)}}, "sets"),
        ({"near/later": {"logits": logits(3, 0)}}, "sets"),
        ({"near:noise": {"logits": logits(3, 0)}}, "own-sets"),
        ({"id/val": {"logits": logits(3, 0)}}, "id/val"),
        ({"id": {"logits": logits(3, 0), "labels": [0, 1, 6]}}, "own-sets"),
        ({"near": {"logits": logits(3, 0)[:, :5]}}, "own-sets"),
        ({"near": {"logits": logits(3, 0), "features": logits(4, 0)}}, "near"),
        ({"near": {}}, "near"),
        ({"near": {"logit": logits(3, 0)}}, "near"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(more, where: str):
    with raises(SplitsError, where=where) as caught:
        evaluate_arrays(arrays(**more), "msp")
    assert "\n" not in caught.value.line()


@pytest.mark.parametrize("model", ["a\ud800b", "a\tb", "a\nb", " ", "a" * 1025])
def test_a_model_name_that_no_table_holds_is_refused(model):
    with raises(DataError, where="results"):
        evaluate_arrays(arrays(), "msp", model=model)


def test_without_an_id_set_there_is_nothing_to_compare_with():
    with raises(DataError, where="own-sets"):
        evaluate_arrays({"near": {"logits": logits(3, 0)}}, "msp")


def test_datasets_give_what_the_benchmark_gives():
    def transform(image):
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255

    parts = UnknownDetectionSet.parts("digits", "test", transform=transform)
    train = UnknownDetectionSet("digits", role="id", split="train", transform=transform)
    roles = {"digits-0-5": "id", "digits-6-9": "near"}
    own = {f"{roles.get(name, 'far')}:{name}": part for name, part in parts.items()}
    own |= {"id:digits-0-5/train": train}
    detectors = "msp,energy,knn[k=5],odin"
    net = network()
    found = evaluate(net, sets=own, detectors=detectors, std=(1, 1, 1))
    whole = evaluate(net, "digits", detectors)
    for detector in detectors.split(","):
        for group in parts.keys() - {"digits-0-5"}:
            for metric in ("auroc", "fpr95_id_positive"):
                ours = found.values(metric, group=group, detector=detector)["value"].tolist()
                assert ours == pytest.approx(
                    whole.values(metric, group=group, detector=detector)["value"].tolist(), abs=1e-6
                )
    assert (
        found.values("accuracy", group="(pooled)")["value"].tolist()
        == whole.values("accuracy", group="(pooled)")["value"].tolist()
    )


def test_datasets_and_loaders_and_lists_of_batches_are_the_same():
    net = network()
    near = pictures(40, 1, labelled=False)
    ways = [near, DataLoader(near, batch_size=7), [near.tensors[0][:30], near.tensors[0][30:]]]
    ways += [[{"pixel_values": near.tensors[0]}], near.tensors[0], (near.tensors[0], labels(40))]
    found = {
        evaluate(net, sets=sets(near=way), detectors="msp").values("auroc", group="near")["value"].tolist()[0]
        for way in ways
    }
    assert max(found) - min(found) < 1e-6


def test_several_models_have_a_row_each():
    other = nn.Sequential(nn.Flatten(), nn.Linear(192, K))
    found = evaluate({"a": network(), "b": other}, sets=sets(), detectors="msp")
    assert found.about.models == ("a", "b")


def test_a_transform_is_of_the_items_of_a_dataset():
    class Items(torch.utils.data.Dataset):  # type: ignore[name-defined]
        def __init__(self, start):
            self.start = start

        def __len__(self):
            return 12

        def __getitem__(self, index):
            return self.start + index, index % K

    def made(number):
        return torch.full((3, 8, 8), number / 24)

    found = evaluate(network(), sets={"id": Items(0), "far": Items(12)}, detectors="msp", transform=made)
    expected = network()(torch.stack([made(number) for number in range(24)])).softmax(1).amax(1).detach()
    truth = np.repeat([1, 0], 12)
    assert found.values("auroc", group="far")["value"].tolist() == [
        pytest.approx(roc_auc_score(truth, expected))
    ]
    with raises(DataError, where="id"):
        evaluate(network(), sets={"id": DataLoader(pictures(9, 1))}, detectors="msp", transform=made)


@pytest.mark.parametrize(
    ("more", "options", "where"),
    [
        ({"near": iter([])}, {}, "near"),
        ({"near": []}, {}, "near"),
        ({"ood": pictures(9, 1)}, {}, "sets"),
        ({}, {"sets": None, "benchmark": {"id": 1}}, "evaluate"),
        ({}, {"detector": "msp"}, "evaluate"),
        ({"near": ["text"]}, {}, "near"),
        ({"near": [torch.zeros(3, 3, 8, 8, dtype=torch.uint8)]}, {}, "near"),
        ({"near": [torch.rand(3, 1, 5, 5)]}, {}, "Sequential on near"),
        (
            {"id": DataLoader(pictures(60, 0), shuffle=True)},
            {"detectors": "odin"},
            "id",
        ),
        ({}, {"detectors": "odin", "std": None}, "Sequential"),
        (
            {},
            {"std": (1, 0, 1)},
            "std",
        ),
        ({}, {"std": "one"}, "std"),
        ({}, {"std": ((1, 1), 2)}, "std"),
        (
            {},
            {"std": (1, 2), "detectors": "odin"},
            "Sequential",
        ),
        ({}, {"classes": 10}, "Sequential"),
        ({}, {"benchmark": "digits"}, "evaluate"),
        ({}, {"detectors": "knn[k=3]"}, "own-sets"),
    ],
)
def test_sets_that_do_not_fit_are_refused_in_one_line(more, options, where: str):
    given = {"detectors": "msp", "std": (1, 1, 1), "sets": sets(**more), **options}
    with raises(SplitsError, where=where) as caught:
        evaluate(network(), **given)
    assert "\n" not in caught.value.line()


def test_a_sweep_over_what_was_read_costs_no_forward_pass():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.images = network(), 0

        def forward(self, x):
            self.images += len(x)
            return self.inner(x)

    given = sets(**{"id/train": pictures(60, 2), "id/val": pictures(60, 3), "external/val": pictures(40, 4)})
    counts = []
    for options in ({}, {"sweep": True}):
        net = Counting()
        found = evaluate(net, sets=given, detectors="knn,energy,gen,msp", **options)
        counts.append(net.images)
    assert counts[0] == counts[1] > 0
    assert len(found.sweeps) > 10


def test_labels_short_of_the_model_s_width_hint_at_classes():
    few = TensorDataset(pictures(20, 0).tensors[0], torch.arange(20) % 3)
    with raises(DataError, where="Sequential", naming=("6", "3")):
        evaluate(network(), sets=sets(id=few), detectors="msp")
    assert evaluate(network(), sets=sets(id=few), detectors="msp", classes=6)


@pytest.mark.parametrize("wrap", [lambda d: d, DataLoader, lambda d: Subset(d, range(12))])
def test_a_dataset_that_names_fewer_classes_than_the_model_has_columns_is_refused(wrap):
    """Its labels are positions in its names: a folder of a test set that is absent shifts the others."""
    few = TensorDataset(pictures(20, 0).tensors[0], torch.arange(20) % 3)
    few.classes = ["0", "270", "90"]
    net = network()
    with pytest.raises(DataError) as refused:
        evaluate(net, sets=sets(id=wrap(few)), detectors="msp", classes=6)
    assert refused.value.where == "id"
    with pytest.raises(DataError) as refused:
        evaluate(net, sets=sets(id=wrap(few)), detectors="msp")
    assert "classes=" not in (refused.value.hint or "")
    columns = ["0", "180", "270", "90", "x", "y"]
    found = evaluate(net, sets=sets(id=wrap(few)), detectors="msp", mapping=columns)
    assert found.about.runs[0].class_map.columns == 3
    train = TensorDataset(pictures(20, 9).tensors[0], torch.arange(20) % 6)
    train.classes = [*few.classes, "a", "b", "c"]  # with which the labels agree
    given = sets(**{"id": wrap(few), "id/train": train})
    assert evaluate(net, sets=given, detectors="msp").about.runs[0].class_map.columns == 6
    assert evaluate(net, sets=given, detectors="msp", classes=6).about.runs[0].class_map.columns == 6


class Watching:
    """Keeps every task: its name, how many steps were announced and done, and the notes beside it."""

    def __init__(self):
        self.tasks = []

    @contextmanager
    def task(self, what, total):
        self.tasks.append({"what": what, "total": total, "done": 0, "notes": []})
        yield self

    def advance(self, steps=1, *, note=""):
        self.tasks[-1]["done"] += steps
        self.tasks[-1]["notes"] += [note] if note else []

    def skip(self, steps):
        self.tasks[-1]["done"] += steps

    def extend(self, steps):
        self.tasks[-1]["total"] += steps


def test_images_that_are_read_once_more_are_announced_when_that_is_known(tmp_path):
    watching = Watching()
    evaluate(network(), "digits", "mdsens", store=tmp_path, progress=watching)
    task = watching.tasks[0]
    assert task["done"] == task["total"] > 360 + 714 + 500 + 500


def test_progress_is_over_all_images_of_a_run_with_the_group_named(tmp_path):
    held = {"id": 360, "digits-6-9": 714, "gaussian": 500, "uniform": 500}
    train = UnknownDetectionSet("digits", role="id", split="train")
    for _ in range(2):  # computed, and read from the store
        watching = Watching()
        evaluate(network(), "digits", "msp,knn[k=5]", store=tmp_path, progress=watching, batch_size=64)
        task = watching.tasks[0]
        assert (task["what"], task["total"]) == ("Sequential", sum(held.values()) + len(train))
        assert task["done"] == task["total"]
        named = dict.fromkeys(note.partition("/")[0] for note in task["notes"])
        assert list(named) == ["digits-0-5", "digits-6-9", "gaussian", "uniform"]
        assert "Sequential" not in [other["what"] for other in watching.tasks[1:]]
    watching = Watching()
    given = sets(**{"far:x": pictures(9, 4)})
    evaluate(network(), sets=given, detectors="msp", progress=watching)
    assert watching.tasks[0]["what"] == "Sequential"
    assert watching.tasks[0]["done"] == watching.tasks[0]["total"] == 109
    assert list(dict.fromkeys(watching.tasks[0]["notes"])) == ["id", "near", "far:x"]


def test_a_dataset_s_classes_have_their_names(tmp_path):
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import ToTensor

    rng = np.random.default_rng(0)
    for name in ("ant", "bee", "cat", "dog", "eel", "fox"):
        (tmp_path / "id" / name).mkdir(parents=True)
        (tmp_path / "near" / f"un{name}").mkdir(parents=True)
        for place in (tmp_path / "id" / name, tmp_path / "near" / f"un{name}"):
            for n in range(2):
                Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(place / f"{n}.png")
    given = {role: ImageFolder(tmp_path / role, ToTensor()) for role in ("id", "near")}
    found = evaluate(network(), sets=given, detectors="msp")
    assert {row["class_id"] for row in found.by_class.to_pylist()} == set(given["near"].classes)
    known = found.scores.filter(pc.equal(found.scores["group"], "id"))
    assert set(known["class_id"].to_pylist()) == set(given["id"].classes)
    wider = nn.Sequential(network(), nn.Linear(K, 9))
    named = ["none", *reversed(given["id"].classes), "x", "y"]
    assert evaluate(wider, sets=given, detectors="msp", mapping=named).about.runs[0].class_map.of == 9


def test_a_report_says_how_to_repeat_it_in_python(tmp_path):
    from loaders.harness import report
    from loaders.harness.report.plots.selection import Selection
    from loaders.harness.report.write_report import commands

    given = {"near:dark": pictures(30, 5, labelled=False)}
    runs = {"a": [network(), nn.Sequential(nn.Flatten(), nn.Linear(192, K))]}
    page = report(evaluate(runs, sets=sets(**given), detectors="msp,mls"), tmp_path / "a.html", mistakes=1)
    text = html.unescape(page.read_text(encoding="utf-8"))
    names = "{'id': ..., 'near': ..., 'near:dark': ...}"
    call = f"loaders.evaluate({{'a': [..., ...]}}, sets={names}, detectors='msp,mls')"
    assert call in text
    assert "--benchmark" not in text
    ours = evaluate_arrays(arrays(), "knn[k=5]", name="mine")
    (line,) = commands(Selection.from_results([ours]).draw)
    names = "{'id': ..., 'near': ..., 'far:noise': ..., 'id/train': ...}"
    assert line == f"loaders.evaluate_arrays({names}, detectors='knn[k=5]', name='mine')"


def test_what_is_written_says_that_no_benchmark_was_compared(tmp_path):
    evaluate(network(), sets=sets(), detectors="msp").write(tmp_path / "results")
    found = check_results(tmp_path / "results")
    assert found.ok
    assert found.benchmark == "images not compared: there is no own-sets here"


def test_a_transform_replaces_the_benchmarks_own():
    net = network()
    dark = evaluate(net, "digits", "msp", groups=["uniform"], transform=lambda image: torch.zeros(3, 8, 8))
    assert dark.values("auroc", group="uniform")["value"].tolist() == [0.5]


def test_options_of_a_model_that_is_made_already_are_refused():
    from loaders.harness import load_model

    for model, more, said in (
        (network(), {"num_classes": 3}, "Sequential"),
        (load_model(network()), {"mapping": [0]}, "evaluate"),
    ):
        with raises(DataError, where=said):
            evaluate(model, "digits", "msp", **more)


MODULE = """
import torch
from torch import nn


def dark(image):
    return torch.zeros(3, 8, 8)


def make(num_classes=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, num_classes))
"""


def test_the_command_line_takes_a_transform_and_a_number_of_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    words = [
        "run",
        "--benchmark",
        "digits",
        "--model",
        "mine:make",
        "--detectors",
        "msp",
        "--group",
        "uniform",
    ]

    def called(*more, module=MODULE):
        (tmp_path / "mine.py").write_text(module)
        sys.modules.pop("mine", None)
        importlib.invalidate_caches()
        code = run(app, [*words, "--group", "uniform", "--device", "cpu", *more], "unknown-eval")
        return code, *capsys.readouterr()

    assert mentions(called("--mean", "0", "--std", "1")[2], "2", "6")
    code, dark, said = called("--num-classes", "6", "--transform", "mine:dark", "--overwrite")
    assert code == 0, said
    assert said.splitlines()[-1].startswith("results in "), said  # after progress, where slow
    assert " 50.00" in dark
    random = MODULE.replace("zeros(3, 8, 8)", "rand(3, 8, 8)")
    code, other, said = called("--num-classes", "6", "--transform", "mine:dark", "--overwrite", module=random)
    assert code == 0, said
    assert other != dark  # stored activations are of the other function
    for text, expected in (
        ("mine:none", ()),
        ("resize31", ()),
        ("mine:torch", ()),
    ):
        code, _, said = called("--num-classes", "6", "--transform", text)
        assert (code, mentions(said, expected)) == (2, True), said
    del sys.modules["mine"]


def test_detectors_of_stages_dropout_and_fitted_steps_take_sets_of_ones_own():
    """Probes of fitted state, of stages and with draws; what a network lacks leaves a preset with a note."""
    sets = {
        name: pictures(
            200 if name == "id/train" else 60, seed
        )  # more than the 192 features that ViM learns of
        for seed, name in enumerate(("id", "id/train", "id/val", "external/val", "far"))
    }
    torch.manual_seed(0)
    convolutional = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(6, K)
    )
    found = evaluate(convolutional, sets=sets, detectors="preset:openood,mc_dropout,oodl", std=(1, 1, 1))
    assert {"mdsens", "gram", "rankfeat", "opengan", "oodl", "mc_dropout"} <= set(found.detectors)
    assert not [note for note in other_notes(found) if "equal confidences" not in note]
    dense = nn.Sequential(nn.Flatten(), nn.Linear(192, K))
    left = evaluate(dense, sets=sets, detectors="preset:openood,preset:kim", std=(1, 1, 1))
    assert {"rankfeat", "mc_dropout"}.isdisjoint(left.detectors)
    assert sum("is left out" in note for note in left.about.notes) >= 2
