"""What `export` writes makes the same images and classes when it is imported, in every format."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError, SourceError, SplitsError, UnknownNameError
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run
from wordnet_splits.exchange import export_benchmark, format_names, import_benchmark

WITH_IMAGES = [name for name in format_names() if name != "pytorch-ood"]


@pytest.fixture(scope="module")
def digits() -> Manifest:
    return load_manifest("digits")


@pytest.fixture(scope="module", params=WITH_IMAGES)
def exported(request, export_once) -> tuple[str, Path]:
    done, folder = export_once("digits", request.param)
    assert (done.images, done.complete, done.awaiting) == (2797, True, [])
    return request.param, folder


def test_it_does_not_overwrite(exported):
    name, folder = exported
    before = sorted(folder.rglob("*"))
    with pytest.raises(OutputError):
        export_benchmark("digits", name, folder)
    assert sorted(folder.rglob("*")) == before


def test_an_export_makes_a_recipe_with_the_same_images(exported, digits, tmp_path):
    name, folder = exported
    sources = {"digits-0-5": "digits", "digits-6-9": "digits", "gaussian": "gaussian", "uniform": "uniform"}
    roles = {"digits-6-9": "near"}
    if name == "openset-imagenet":  # its paths say the group, its labels the role
        roles |= {"digits-0-5": "id"}
    done = import_benchmark(name, folder, tmp_path / "out", sources=sources, roles=_said(name, roles))
    assert done.recipe is not None
    assert done.manifest is not None
    assert done.fingerprint == digits.fingerprint
    assert len(done.lists) == len(digits.parts)


def groups_of(table: pa.Table) -> set[tuple[str, str, str, int]]:
    names = ("source", "class_id", "group", "label")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return {row for row in rows if row[2]}


def test_csv_keeps_classes_without_images(tmp_path):
    """Two digits have lost their images."""
    digits = load_manifest("digits")
    export_benchmark(digits, "csv", tmp_path / "csv")
    file = tmp_path / "csv" / "images.csv"
    head, *rows = file.read_text().splitlines(keepends=True)
    column = head.split(",").index("class_id")
    kept = [row for row in rows if not (row.startswith("digits,") and row.split(",")[column] in "38")]
    assert len(kept) < len(rows)
    file.write_text("".join([head, *kept]))
    done = import_benchmark("csv", tmp_path / "csv", tmp_path / "out")
    assert done.manifest is not None
    assert groups_of(done.manifest.classes) == groups_of(digits.classes)
    assert done.manifest.images().num_rows == len(kept)
    assert "'3'" not in str(done.manifest.images("test", "digits-0-5")["class_id"].to_pylist())
    (tmp_path / "csv" / "classes.csv").unlink()
    with pytest.raises(DataError) as refused:  # the labels of the list would not be those of five classes
        import_benchmark("csv", tmp_path / "csv", tmp_path / "bare")
    assert refused.value.where == "group digits-0-5"
    assert not (tmp_path / "bare").exists()


def test_csv_names_ood_groups_that_have_classes_and_no_images(tmp_path):
    frozen = load_manifest("unknown-cifar-tinyval")
    assert frozen.data.awaiting == ["lsun"]
    listed, bare = ["cifar-40", "svhn"], ["lsun", "tin158"]
    export_benchmark(frozen, "csv", tmp_path / "csv", groups=[*listed, *bare], splits=["test"])
    with raises(DataError, where="csv", naming=("lsun", "tin158")):
        import_benchmark("csv", tmp_path / "csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    done = import_benchmark("csv", tmp_path / "csv", tmp_path / "out", allow_missing=True)
    assert done.manifest is not None
    assert groups_of(done.manifest.classes) == {r for r in groups_of(frozen.classes) if r[2] in listed}
    assert done.manifest.images().num_rows == sum(frozen.images("test", group).num_rows for group in listed)
    assert {(e.group, e.class_id) for e in done.unmatched} == {
        (group, class_id) for _, class_id, group, _ in groups_of(frozen.classes) if group in bare
    }


@pytest.mark.parametrize("name", format_names())
def test_a_part_of_a_benchmark(name, digits, tmp_path):
    given = {"roots": {}, "groups": ["digits-0-5"], "splits": ["test", "val"]}
    done = export_benchmark("digits", name, tmp_path / "part", **given)
    wanted = pa.concat_tables([digits.images(s, "digits-0-5") for s in ("val", "test")])
    if name != "pytorch-ood":
        assert done.images == wanted.num_rows
    sources, roles = {"digits-0-5": "digits"}, {"digits-0-5": "id"}
    back = import_benchmark(name, tmp_path / "part", tmp_path / "out", sources=sources, roles=roles).manifest
    assert back is not None
    classes = {row for row in groups_of(digits.classes) if row[2] == "digits-0-5"}
    assert groups_of(back.classes) == classes
    if name != "pytorch-ood":
        assert set(back.images()["image_id"].to_pylist()) == set(wanted["image_id"].to_pylist())
        assert {split for split, _ in back.parts} == {"val", "test"}


def test_a_part_that_is_none_is_refused(tmp_path):
    for given, message in (
        ({"groups": ["digits-0-6"]}, "digits-0-5"),
        ({"splits": ["tests"]}, "test"),
        ({"groups": ["gaussian"], "splits": ["train"]}, "gaussian"),
    ):
        with raises(SplitsError, where="digits", naming=message):
            export_benchmark("digits", "openood", tmp_path / "x", **given)
    assert not (tmp_path / "x").exists()


def _said(name: str, roles: dict[str, str]) -> dict[str, str]:
    """A tree of folders has no labels, so that its ID group must be named."""
    return roles | {"digits-0-5": "id"} if name == "imagefolder" else roles


def test_pictures_need_a_root_or_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WORDNET_SPLITS_ROOT_CIFAR100", raising=False)
    with raises(SourceError, where="cifar100"):
        export_benchmark("rungs-cifar100", "imagefolder", tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    done = export_benchmark("rungs-cifar100", "imagefolder", tmp_path / "tree", allow_missing=True)
    assert done.images == 0
    assert len(done.problems) == load_manifest("rungs-cifar100").images().num_rows


def test_names_that_do_not_exist_are_refused(tmp_path):
    with raises(UnknownNameError, near="openood"):
        export_benchmark("digits", "openoood", tmp_path / "x")
    with raises(UnknownNameError, naming="nearby"):
        import_benchmark("openood", tmp_path, tmp_path / "out", roles={"a": "nearby"})
    with raises(UnknownNameError, naming="cifar-10"):
        import_benchmark("openood", tmp_path, tmp_path / "out", source="cifar-10")
    with raises(UnknownNameError, naming="testing"):
        import_benchmark("openood", tmp_path, tmp_path / "out", split="testing")


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "manifests.md").read_text(encoding="utf-8")


@pytest.mark.docs
def test_the_page_runs_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL):
        if kind == "python":
            exec(compile(block, "docs/manifests.md", "exec"), names)
            continue
        for line in block.splitlines():
            assert run(app, shlex.split(line)[1:], "wordnet-splits") == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "test/gaussian/all/8x8x1%2Fs0%2F00000.png -1\n500\n" in said
    assert "['my-lists/test_id', 'my-lists/test_odd']" in said
    assert said.endswith("True\n")


def test_the_page_has_every_format():
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == list(format_names())
