"""The command line: exit codes, one JSON object, one line for every error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fix_resize import get_spec, resize
from fix_resize.cli.main import app
from fix_resize.pipeline import shards
from fix_resize.pipeline.selection import select_manifest
from tests.fix_resize.sets import jpeg, make_folder, photographs, run_here
from tests.fix_resize.sets import run as run_process
from wordnet_splits.base.digests import order_images
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import run


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "pictures")


def command(*words: object) -> int:
    return run(app, [str(word) for word in words], "fix-resize")


def test_a_folder_is_built_and_verified(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command("build", "folder", "--root", pictures, "--out", out, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["images"], said["complete"], said["spec"]["id"]) == (15, True, get_spec("fix").id)
    assert said["fingerprint"] == json.loads((out / "output.json").read_text())["fingerprint"]
    assert (said["missing"], said["quarantined"], said["shards"]) == ([], [], {"made": 1, "kept": 0})
    assert command("verify", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    shutil.copy(out / "class-0" / "picture 000.png", out / "class-1" / "picture 001.png")
    assert command("verify", out, "--json") == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["image_id"] == "class-1/picture 001"
    assert command("verify", out) == 1
    assert "altered: class-1/picture 001" in capsys.readouterr().err


def test_quarantine_is_counted_and_exits_with_3(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "class-0" / "cut.jpg").write_bytes(jpeg(1)[:-100])
    (pictures / "class-0" / "readme.md").write_text("x")
    assert command("build", "folder", "--root", pictures, "--out", tmp_path / "out") == 3
    said = capsys.readouterr()
    assert "quarantined: 1 (truncated 1)" in said.err
    assert "folder:class-0/cut: truncated" in said.err
    assert "folder: 1 files with unexpected names" in said.err
    assert command("build", "folder", "--root", pictures, "--out", tmp_path / "out", "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert [row["image_id"] for row in said["quarantined"]] == ["class-0/cut"]


@pytest.mark.parametrize("out", [".", "below/.."])
def test_the_current_folder_as_output(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    """Whatever locks lie in it, of this build or of others."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / ".fixed.lock").touch()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        assert command("build", "folder", "--root", pictures, "--out", out) == 0
    assert command("verify", ".") == 0


SCHEDULER = ["folder", "--root", "ROOT", "--scheduler"]
BAD: list[tuple[list[str], str, str | None]] = [
    (["folders"], "unknown-name", None),
    (["folder"], "error", "--root"),
    (["folder", "--root", "ROOT", "--spec", "fixx"], "unknown-name", None),
    (["folder", "--root", "ROOT", "--format", "jpg"], "unknown-name", None),
    (["folder", "--root", "ROOT", "--backend", "cuda"], "unknown-name", "--backend"),
    (["folder", "--root", "ROOT", "--local"], "error", None),
    (["folder", "unknown-cifar", "--root", "ROOT"], "error", None),
    (["folder", "--root", "ROOT/nowhere"], "source", "ROOT/nowhere"),
    (["folder", "--root", "EMPTY"], "source", "EMPTY"),
    (["folder", "--root", "ROOT", "--workers", "2", "--scheduler", "tcp://x:1"], "error", None),
    (["folder", "--root", "ROOT", "--workers", "0"], "error", "fix-resize build"),
    (["tiny-imagenet", "--root", "ROOT", "--per-class", "3"], "error", None),
    (["tiny-imagenet", "--root", "ROOT"], "source", "ROOT"),
    (["lsun"], "source", "lsun"),
    (["from-manifest"], "error", None),
    (["from-manifest", "unknown-cifr"], "unknown-name", None),
    (["from-manifest", "unknown-cifar", "--group", "tin"], "unknown-name", "unknown-cifar"),
    (["from-manifest", "digits"], "error", "digits"),
    (["from-manifest", "unknown-cifar", "--split", "tests"], "unknown-name", "unknown-cifar"),
    ([*SCHEDULER, "127.0.0.1:1"], "error", "127.0.0.1:1"),
    ([*SCHEDULER, "tls://127.0.0.1:1"], "error", "tls://127.0.0.1:1"),
    ([*SCHEDULER, "tcp://[::1"], "error", "tcp://[::1"),
    ([*SCHEDULER, "tcp://x:y"], "error", "tcp://x:y"),
    ([*SCHEDULER, "tcp://:8786"], "error", "tcp://:8786"),
]


@pytest.mark.parametrize(("words", "kind", "where"), BAD, ids=[" ".join(words) for words, *_ in BAD])
def test_bad_input_is_one_line_and_exits_with_2(
    pictures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    kind: str,
    where: str | None,
) -> None:
    monkeypatch.setattr("fix_resize.pipeline.cluster.CONNECT_TIMEOUT", 1)
    places = {"ROOT": str(pictures), "EMPTY": str(tmp_path / "empty")}
    (tmp_path / "empty").mkdir()

    def filled(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    assert command("build", *map(filled, words), "--out", tmp_path / "out", "--json") == 2
    printed = capsys.readouterr()
    assert printed.err.count("error:") == 1
    error = json.loads(printed.out)["error"]
    assert (error["kind"], error["where"]) == (kind, where and filled(where))
    assert not (tmp_path / "out" / "output.json").exists()


def test_without_dask_the_extra_is_named(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ("build", "folder", "--root", pictures, "--out", tmp_path / "out")
    assert command(*words, "--scheduler", "tcp://127.0.0.1:8786") == 2
    assert "[dask]'" in capsys.readouterr().err


def test_groups_without_a_root_are_built_from_their_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("build", "from-manifest", "digits", "--split", "test", "--format", "parquet")
    manifest = load_manifest("digits")
    groups = sorted(group for split, group in manifest.parts if split == "test")
    chosen = [word for group in groups for word in ("--group", group)]
    assert command(*words, *chosen, "--out", tmp_path / "out", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    rows = pq.read_table(tmp_path / "out" / "images.parquet")
    frozen = manifest.images("test").to_pylist()
    assert said["images"] == len(rows) == len(frozen)
    columns = ("source", "image_id", "group", "label", "digest")
    assert sorted(zip(*(rows[c].to_pylist() for c in columns), strict=True)) == sorted(
        tuple(row[c] for c in columns) for row in frozen
    )


def test_missing_images_are_an_error_or_reported_one_by_one(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = load_manifest("unknown-imagenet").images("test", "near-200")["image_id"].to_pylist()
    root = tmp_path / "imagenet" / "val"
    root.mkdir(parents=True)
    there = sorted(frozen)[5:8]
    for image_id, photo in zip(there, photographs(real_data), strict=False):
        shutil.copy(photo, root / f"{image_id}.JPEG")
    words = ["build", "from-manifest", "unknown-imagenet", "--group", "near-200", "--out", tmp_path / "out"]
    words += ["--root", f"imagenet1k={root.parent}"]
    assert command(*words) == 2
    assert f"{len(frozen) - 3:,} images are missing" in capsys.readouterr().err
    assert command(*words, "--allow-missing", "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert (said["images"], said["complete"]) == (3, False)
    assert sorted(row["image_id"] for row in said["missing"]) == sorted(set(frozen) - set(there))
    table = pq.read_table(tmp_path / "out" / "missing.parquet")
    assert sorted(table["image_id"].to_pylist()) == sorted(set(frozen) - set(there))
    for path in root.iterdir():
        path.unlink()
    numbers = (f"ILSVRC2012_val_{n:08d}" for n in range(1, 50_001))
    another = next(image_id for image_id in numbers if image_id not in frozen)
    (root / f"{another}.JPEG").write_bytes(b"x")
    assert command(*words, "--allow-missing") == 2
    assert "none of the images" in capsys.readouterr().err


def test_tiny_imagenet_is_drawn_as_the_recipe_cuts_it(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """13 or 12 of each class for val, the next for train; what the root lacks of 500 is said."""
    root, held = tmp_path / "imagenet", {}
    for path in photographs(real_data):
        wnid = path.parent.name
        held[wnid] = [f"{wnid}_{n}" for n in range(1000, 1020)]
        folder = root / "train" / wnid
        folder.mkdir(parents=True)
        for image_id in held[wnid]:
            (folder / f"{image_id}.JPEG").write_bytes(b"not looked at yet")
    words = ["build", "tiny-imagenet", "--root", f"imagenet1k={root}", "--out", tmp_path / "out"]
    assert command(*words) == 2
    assert "of 1,281,167 train images" in capsys.readouterr().err
    assert command(*words, "--local") == 2
    assert "12 of 500" not in (said := capsys.readouterr().err)
    assert "158 classes have" in said
    roots, groups = {"imagenet1k": root}, ["tin158"]
    selection = select_manifest("unknown-cifar", roots, groups=groups, local=True, allow_missing=True)
    assert selection.name == "unknown-cifar@local"
    rows = selection.table.to_pylist()
    classes = {row["class_id"] for row in rows}
    assert len(classes) == 158
    assert sum(row["split"] == "val" for row in rows) == 2000
    for wnid in classes:
        order = order_images("unknown-cifar", 0, "imagenet1k", wnid, held[wnid])
        val = [row["image_id"] for row in rows if (row["class_id"], row["split"]) == (wnid, "val")]
        train = [row["image_id"] for row in rows if (row["class_id"], row["split"]) == (wnid, "train")]
        assert sorted(val) == sorted(order[: len(val)])
        assert len(val) in (12, 13)
        assert sorted(train) == sorted(order[len(val) :])
    assert sum(s.wanted - s.taken for s in selection.shortfalls) == 79_000 + 2000 - 158 * 20
    assert selection.population["tin158"] == dict.fromkeys(classes, 20)


def test_a_build_and_its_check_end_with_zero(pictures: Path, tmp_path: Path) -> None:
    assert run_here("build", "folder", "--root", pictures, "--out", tmp_path / "out").code == 0
    assert run_process("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize("name", ["class-0/picture 000.png", "images.parquet", "output.json"])
def test_a_folder_with_the_name_of_a_file_is_refused_before_the_work(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (pictures / name).mkdir()
    (pictures / name / "inside.jpg").write_bytes(jpeg(1))
    words = ["build", "folder", "--root", pictures, "--out", tmp_path / "out"]
    assert command(*words) == 2
    assert f"error: {name}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert command(*words, "--format", "parquet") == 0


def test_an_unreadable_file_is_left_out_by_the_flag_that_the_error_names(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(pictures / "class-0" / "pipe.jpg")
    words = ["build", "folder", "--root", pictures, "--out", tmp_path / "out"]
    assert command(*words) == 2
    assert "1 images are unreadable" in (said := capsys.readouterr().err)
    assert "--allow-missing" in said
    assert command(*words, "--allow-missing") == 3
    assert "left out: 1 (unreadable 1)" in capsys.readouterr().err


@pytest.mark.parametrize("error", [OSError("Could not find/load libllvmlite.so"), MemoryError()])
def test_auto_takes_pillow_where_numba_cannot_be_loaded_and_says_so(
    pictures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def load(name: str) -> None:
        raise error

    monkeypatch.setattr("fix_resize.resize.import_module", load)
    resize._import.cache_clear()
    shards._resizer.cache_clear()
    assert command("build", "folder", "--root", pictures, "--out", tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert "note: the numba backend cannot be loaded" in said
    assert "Pillow resizes instead" in said
    words = ["build", "folder", "--root", pictures, "--out", tmp_path / "other", "--backend", "numba"]
    assert command(*words) == 2
    assert capsys.readouterr().err.count("\n") == 1
