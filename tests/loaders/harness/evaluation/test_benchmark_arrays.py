"""Arrays made elsewhere: matched with a benchmark's images by id, from Python or from a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders import evaluate_arrays
from loaders.harness import Results, check_results, image_ids
from loaders.harness.cli.main import app
from loaders.harness.evaluation.array_files import read_sets
from loaders.harness.leaderboard.submission import submit
from tests.raising import mentions, raises
from tests.wordnet_splits.command import run
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest

ID = "digits-0-5"
GROUPS = (ID, "digits-6-9", "gaussian", "uniform")
Sets = dict[str, dict[str, Any]]


def arrays(shuffled: bool = False, groups: tuple[str, ...] = GROUPS) -> Sets:
    """Return logits of every test group, in the benchmark's order or in another."""
    sets: Sets = {}
    for number, group in enumerate(groups):
        rng = np.random.default_rng(number)
        ids = np.array(image_ids("digits", group))
        logits = rng.normal(size=(len(ids), 6)).astype(np.float32) * (3 if group == ID else 1)
        order = rng.permutation(len(ids)) if shuffled else np.arange(len(ids))
        sets[group] = {"logits": logits[order], "ids": ids[order]}
    return sets


def refused(where: str, named: object, sets: Any, **options: Any) -> None:
    with raises(SplitsError, where=where, naming=named) as caught:
        evaluate_arrays(sets, "msp", benchmark="digits", **options)
    assert str(caught.value).isprintable()


def test_rows_are_matched_by_id_in_any_order(tmp_path: Path) -> None:
    in_order = evaluate_arrays(arrays(), "msp,energy", benchmark="digits", model="mine")
    shuffled = evaluate_arrays(arrays(shuffled=True), "msp,energy", benchmark="digits", model="mine")
    assert shuffled.scores.equals(in_order.scores)
    assert shuffled.predictions.equals(in_order.predictions)
    assert shuffled.about == in_order.about  # the model's key among it
    about, manifest = in_order.about, load_manifest("digits")
    assert (about.images_fingerprint, about.custom_sets) == (manifest.fingerprint, ())
    in_order.write(tmp_path / "r")
    assert check_results(tmp_path / "r").ok
    with raises(DataError, where="r", naming="mine"):
        submit(tmp_path / "r", by="me", to=tmp_path / "entries")
    entry = submit(tmp_path / "r", by="me", to=tmp_path / "entries", commands=["python mine.py"])
    facts = json.loads((entry / "entry.json").read_text())["facts"]
    assert facts["images"] == manifest.fingerprint
    assert [row["scored"] == row["expected"] for row in facts["sets"]] == [True] * 4


def test_ids_may_come_apart_and_without_their_source() -> None:
    sets = arrays()
    ids = {
        group: [name.partition("/")[2] for name in of_group.pop("ids")] for group, of_group in sets.items()
    }
    expected = evaluate_arrays(arrays(), "msp", benchmark="digits")
    assert evaluate_arrays(sets, "msp", benchmark="digits", ids=ids).scores.equals(expected.scores)
    refused("ids", "unifrom", sets, ids={"unifrom": []})
    refused(ID, "ids", arrays(), ids={ID: ids[ID]})


def changed(group: str, **changes: Any) -> Sets:
    sets = arrays()
    sets[group] = {**sets[group], **changes}
    return sets


def rows(sets: Sets, group: str, keep: Any) -> Sets:
    return {**sets, group: {name: array[keep] for name, array in sets[group].items()}}


def test_each_mistake_is_one_line() -> None:
    ids = arrays()["uniform"]["ids"]
    names = image_ids("digits", "gaussian")
    refused(
        "uniform",
        "unknown-eval scores ids digits uniform",
        changed("uniform", ids=None),
    )
    refused(
        "uniform",
        ("1", "uniform/8x8x1/s0/00001"),
        changed("uniform", ids=[ids[1], *ids[1:]]),
    )
    refused("uniform", ("499", "500"), changed("uniform", ids=ids[1:]))
    refused("uniform", ("1", "nothing"), changed("uniform", ids=["nothing", *ids[1:]]))
    refused("uniform", ("500", "gaussian", "gaussian/8x8x1/s0/00000"), changed("uniform", ids=names))
    refused("uniform", "ids", changed("uniform", ids=[ids[1].partition("/")[2], *ids[1:]]))
    refused(
        "uniform",
        ("3", "500", "uniform/8x8x1/s0/00000", "allow_missing"),
        rows(arrays(), "uniform", slice(3, None)),
    )
    refused("digits", "gaussian", arrays(groups=(ID, "digits-6-9", "uniform")))
    refused("digits", "digits-0-5", arrays(groups=GROUPS[1:]), allow_missing=True)
    refused("digits", ("unifrom", "uniform"), {**arrays(), "unifrom": arrays()["uniform"]})
    bad = arrays()["uniform"]["logits"].copy()
    bad[7, 2] = np.nan
    refused("uniform", "logits", changed("uniform", logits=bad))
    refused(
        "uniform",
        ("logits", "500", "float32"),
        changed("uniform", logits=bad[:, 0]),
    )
    refused("digits", ("logits", "5", "6"), changed("uniform", logits=np.zeros((500, 5))))
    refused(
        "arrays",
        ("7", "6"),
        {group: {**of, "logits": np.pad(of["logits"], ((0, 0), (0, 1)))} for group, of in arrays().items()},
    )
    labels = load_manifest("digits").images("test", ID)["label"].to_numpy().copy()
    assert evaluate_arrays(changed(ID, labels=labels), "msp", benchmark="digits")
    labels[4] = (labels[4] + 1) % 6
    refused(ID, "1", changed(ID, labels=labels))
    for option in ({"classes": 6}, {"name": "mine"}):
        refused("evaluate_arrays", next(iter(option)), arrays(), **option)
    refused("absent", (), "absent")


def test_gaps_may_be_left_out_and_are_named() -> None:
    sets = rows(arrays(groups=(ID, "digits-6-9", "uniform")), "uniform", slice(3, None))
    results = evaluate_arrays(sets, "msp", benchmark="digits", allow_missing=True)
    assert results.about.left_out == (
        "gaussian/test: all images left out: no arrays",
        "uniform/test: 3 images left out: no row in the arrays",
    )
    assert {(row.group, row.scored) for row in results.about.missing} == {("gaussian", 0), ("uniform", 497)}
    chosen = evaluate_arrays(arrays(groups=(ID, "uniform")), "msp", benchmark="digits", groups=["uniform"])
    assert not chosen.about.left_out


def test_columns_are_mapped_and_detectors_learn_on_train() -> None:
    sets = {**arrays(), f"{ID}/train": {}}
    ids = image_ids("digits", ID, "train")
    sets[f"{ID}/train"] = {"logits": np.random.default_rng(9).normal(size=(len(ids), 6)), "ids": ids}
    for number, of_set in enumerate(sets.values()):
        of_set["features"] = np.random.default_rng(number).normal(size=(len(of_set["logits"]), 4))
    results = evaluate_arrays(sets, "msp,knn[k=5],mds", benchmark="digits")
    assert results.detectors == ("msp", "knn[k=5]", "mds")
    wide = {name: {**of, "logits": np.pad(of["logits"], ((0, 0), (2, 0)))} for name, of in sets.items()}
    mapped = evaluate_arrays(wide, "mls", benchmark="digits", mapping=[2, 3, 4, 5, 6, 7])
    assert mapped.scores.equals(evaluate_arrays(sets, "mls", benchmark="digits").scores)
    with raises(DataError, where="digits", naming="knn"):
        evaluate_arrays(arrays(), "knn", benchmark="digits")
    optional = evaluate_arrays(arrays(), "preset:openood", benchmark="digits", model="mine")
    assert "mine: knn is left out: it fits on ID train images, and there are no outputs for" in " ".join(
        optional.about.notes
    )


def test_without_labels_there_is_auroc_and_no_accuracy() -> None:
    rng = np.random.default_rng(0)
    sets: Sets = {
        "id": {"logits": rng.normal(size=(50, 3)) * 4},
        "near": {"logits": rng.normal(size=(40, 3))},
    }
    unlabelled = evaluate_arrays(sets, "msp")
    labelled = evaluate_arrays({**sets, "id": {**sets["id"], "labels": np.arange(50) % 3}}, "msp")
    for metric in ("auroc", "fpr95_id_positive"):
        assert (
            unlabelled.values(metric, group="near", detector="msp")["value"].tolist()
            == labelled.values(metric, group="near", detector="msp")["value"].tolist()
        )
    assert "accuracy" in {row["metric"] for row in labelled.rows()}
    assert not {"accuracy", "aurc"} & {row["metric"] for row in unlabelled.rows()}
    assert "AUROC" in str(unlabelled)
    with raises(DataError, where="id/train"):
        evaluate_arrays({**sets, "id/train": sets["id"]}, "msp")


def write_folder(folder: Path, sets: Sets) -> None:
    """Write one file of each kind: .npz, .npy, Parquet and safetensors."""
    from safetensors.numpy import save_file

    folder.mkdir(exist_ok=True)
    first, second, third, fourth = sets.items()
    np.savez(folder / f"{first[0]}.npz", **first[1])
    np.save(folder / f"{second[0]}.npy", second[1]["logits"])
    logits = pa.FixedSizeListArray.from_arrays(pa.array(third[1]["logits"].ravel()), 6)
    pq.write_table(pa.table({"ids": third[1]["ids"], "logits": logits}), folder / f"{third[0]}.parquet")
    save_file({"logits": fourth[1]["logits"]}, folder / f"{fourth[0]}.safetensors")
    for group, of_group in (second, fourth):
        (folder / f"{group}.txt").write_text("\n".join(of_group["ids"]) + "\n")


def test_the_command_line_takes_a_folder_of_any_of_the_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "mine", arrays(shuffled=True))
    words = ["run", "--benchmark", "digits", "--detectors", "msp", "--arrays", "mine"]
    assert run(app, [*words, "--out", "r"], "unknown-eval") == 0
    shown = capsys.readouterr().out
    assert "Model mine: weights as given in arrays" in shown
    expected = evaluate_arrays(arrays(), "msp", benchmark="digits", model="mine")
    assert check_results("r").ok
    assert Results.read("r").scores.equals(expected.scores)
    assert evaluate_arrays("mine", "msp", benchmark="digits", model="mine").scores.equals(expected.scores)
    Path("mine/uniform.safetensors").unlink()
    assert run(app, words, "unknown-eval") == 2
    assert mentions(capsys.readouterr().err, "digits")
    assert run(app, [*words, "--allow-missing", "--out", "s"], "unknown-eval") == 3
    assert run(app, ["run", "--benchmark", "digits"], "unknown-eval") == 2
    assert "no model is given" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        *("--model timm:x", "--weights x.pt", "--head fc", "--transform none", "--mean 0", "--std 1"),
        *("--runs", "--num-classes 6", "--negatives x", "--template {}", "--root digits=x", "--packed x"),
        *("--device cpu", "--shard 1/2", "--store build/activations", "--batch-size 128", "--workers 0"),
        "--trust-model",
    ],
)
def test_options_of_forward_passes_are_refused_even_at_their_defaults(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "--benchmark", "digits", "--arrays", "absent", "--json", *option.split()]
    assert run(app, words, "unknown-eval") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["where"]) == ("error", "unknown-eval run")
    assert option.split()[0] in error["what"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("group", [ID, "digits-6-9"])
@pytest.mark.parametrize(
    "labels", [np.arange(5) % 6, np.int64(3), np.zeros((714, 1), int), np.zeros(360) + 0j, np.zeros(360), "x"]
)
def test_labels_of_other_images_are_refused_by_the_name_of_the_set(group: str, labels: Any) -> None:
    with pytest.raises(DataError) as caught:
        evaluate_arrays(changed(group, labels=labels), "msp", benchmark="digits")
    assert caught.value.where == group


def test_the_command_ids_prints_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["scores", "ids", "digits", "uniform"], "unknown-eval") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == image_ids("digits", "uniform")
    assert (lines[1], len(lines)) == ("uniform/8x8x1/s0/00001", 500)
    assert run(app, ["scores", "ids", "digits", ID, "--split", "val", "--json"], "unknown-eval") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["ids"] == image_ids("digits", ID, "val")
    assert facts["fingerprint"] == load_manifest("digits").images_fingerprint(("val", ID))
    for words, says in ((("digits", "unifrom"), "uniform"), (("digit", "uniform"), "digits")):
        assert run(app, ["scores", "ids", *words], "unknown-eval") == 2
        assert mentions(capsys.readouterr().err, says)
    with raises(UnknownNameError, where="digits", naming="digits-6-9/val"):
        image_ids("digits", "digits-6-9", "val")


def test_the_head_comes_from_its_file_and_splits_from_their_folders(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", weight=np.eye(6, 4), bias=np.zeros(6))
    (tmp_path / "train").mkdir()
    np.savez(tmp_path / "train" / "id.npz", features=np.ones((2, 4)), labels=[0, 1], ids=["a", "b"])
    sets, head = read_sets(tmp_path)
    assert set(sets) == {"id/train"}
    assert head is not None
    assert head[0].shape == (6, 4)
    np.savez(tmp_path / "head.npz", weight=np.eye(6, 4))
    with raises(DataError, where="head.npz"):
        read_sets(tmp_path)


def test_a_set_is_in_one_file(tmp_path: Path) -> None:
    for name in ("a.npz", "a.npy"):
        (np.savez if name.endswith("z") else np.save)(tmp_path / name, np.ones((2, 3)))
    with raises(DataError, where=tmp_path):
        read_sets(tmp_path)
