"""fix-resize audit, as a user meets it: exit codes, tables, JSON, files, one-line errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fix_resize.cli.main import app
from tests.fix_resize.made_photos import Pixels, photo, rendered, save
from wordnet_splits.cli.main import run

Command = Callable[..., tuple[int, str, str]]
PHOTOS, OTHERS = 40, 60
pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command and return (exit code, stdout, stderr)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run(app, [str(a) for a in arguments], "fix-resize")
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture(scope="module")
def photos() -> dict[str, Pixels]:
    return {f"scene{n % 2}/{n:03}": photo(n) for n in range(PHOTOS)}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory, photos: dict[str, Pixels]) -> Path:
    """Folders: photographs, the same under two specs, and others under fix as the reference."""
    base = tmp_path_factory.mktemp("sets")
    save(base / "photos", photos)
    save(base / "reference", rendered({f"{n:03}": photo(1000 + n) for n in range(OTHERS)}, "fix"))
    for spec in ("fix", "nearest"):
        save(base / spec, rendered(photos, spec))
    return base


def test_a_clean_set_with_its_originals(command: Command, sets: Path) -> None:
    code, out, err = command(
        "audit", sets / "fix", "--reference", sets / "reference", "--originals", sets / "photos"
    )
    assert (code, err) == (0, "")
    assert "clean: of 40 pairs 100% clean (within 1.5 grey levels of fix)" in out
    assert "40 pictures of 32 x 32" in out
    assert "60 pictures" in out


def test_an_aliased_set_with_its_originals(command: Command, sets: Path) -> None:
    code, out, _ = command(
        "audit", sets / "nearest", "--reference", sets / "reference", "--originals", sets / "photos"
    )
    assert code == 1
    assert "aliased: of 40 pairs 100% aliased (decimated without one)" in out


def test_without_originals_there_is_only_a_warning(command: Command, sets: Path) -> None:
    code, out, _ = command("audit", sets / "nearest", "--reference", sets / "reference")
    assert code == 1
    assert "suspicious (interval above 0.70" in out
    code, out, _ = command("audit", sets / "fix", "--reference", sets / "reference")
    assert code == 0
    assert "no warning" in out
    assert "proves nothing" in out


def test_json_and_files(command: Command, sets: Path, tmp_path: Path) -> None:
    arguments = ("audit", sets / "nearest", "--reference", sets / "reference", "--originals", sets / "photos")
    code, out, _ = command(*arguments, "--out", tmp_path / "a" / "b", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["ok"], found["verdict"]) == (False, "aliased")
    assert found["images"] == found["paired"]["pairs"] == PHOTOS
    assert 0.9 < found["signed"]["lo"] <= found["signed"]["value"] <= found["signed"]["hi"] <= 1
    assert found["paired"]["shares"]["aliased"] == found["paired"]["differing"] == 1
    assert found["paired"]["aliasing"]["median"] > 0.4
    assert [Path(f).name for f in found["files"]] == [
        "scores.parquet",
        "audit.json",
        "histogram.svg",
        "suspicious.png",
    ]
    assert {f.name for f in (tmp_path / "a" / "b").iterdir()} == {Path(f).name for f in found["files"]}
    rows = pq.read_table(tmp_path / "a" / "b" / "scores.parquet").to_pylist()
    assert len(rows) == PHOTOS
    assert all(row["original"] == row["image_id"] for row in rows)
    assert np.mean([row["variation"] > row["fix_variation"] for row in rows]) > 0.95
    distance = {row["image_id"]: row["difference"] for row in rows}
    assert found["most_suspicious"] == sorted(distance, key=lambda i: -distance[i])[:20]
    kept = json.loads((tmp_path / "a" / "b" / "audit.json").read_text())
    assert kept == {key: value for key, value in found.items() if key != "files"}


def test_files_are_the_same_bytes_every_time(command: Command, sets: Path, tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        command("audit", sets / "nearest", "--reference", sets / "reference", "--out", tmp_path / name)
        written.append({f.name: f.read_bytes() for f in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    assert len(written[0]) == 4


def test_awkward_names(
    command: Command, sets: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    names = ("$x_{2}$", "\u4e2d", "a\nb", "..c", "d.e")
    folder = save(tmp_path / "$\u4e2d^", {name: photo(n, 32, 32) for n, name in enumerate(names)})
    arguments = ("audit", folder, "--reference", sets / "reference", "--json")
    code, out, _ = command(*arguments, "--out", tmp_path / "o")
    assert code in (0, 1)
    assert sorted(json.loads(out)["most_suspicious"]) == sorted(n for n in names if not n.startswith("."))
    assert not recwarn.list


def test_limit_draws_the_same_pictures(command: Command, sets: Path) -> None:
    arguments = ("audit", sets / "nearest", "--reference", sets / "reference", "--limit", 15, "--json")
    code, out, _ = command(*arguments)
    found = json.loads(out)
    assert (code, found["images"], found["of"]) == (1, 15, PHOTOS)
    assert json.loads(command(*arguments)[1]) == found
    names = sorted(f"scene{n % 2}/{n:03}" for n in range(PHOTOS))
    assert sorted(found["most_suspicious"]) != names[:15]


def test_what_cannot_be_read_is_left_out_and_said(command: Command, sets: Path, tmp_path: Path) -> None:
    folder = save(tmp_path / "set", {"a": photo(3, 32, 32), "b": photo(4, 32, 32), "c": photo(5, 40, 32)})
    (folder / "d.png").write_bytes((folder / "a.png").read_bytes()[:100])
    (folder / "e.jpg").write_text("no picture")
    (folder / "notes.txt").write_text("a file of another kind")
    code, out, err = command(
        "audit", folder, "--reference", sets / "reference", "--json", "--out", tmp_path / "o"
    )
    found = json.loads(out)
    left_out = {row["image_id"]: row["reason"] for row in found["left_out"]}
    assert left_out == {"c": "size", "d": "truncated", "e": "unidentified"}
    assert (found["images"], found["other_files"]) == (2, 1)
    assert code == (3 if found["ok"] else 1)
    assert "left out" in err
    table = pq.read_table(tmp_path / "o" / "left-out.parquet")
    assert table["image_id"].to_pylist() == ["c", "d", "e"]


def test_exit_code_3_where_a_clean_set_had_pictures_left_out(
    command: Command, sets: Path, photos: dict[str, Pixels], tmp_path: Path
) -> None:
    folder = save(tmp_path / "set", rendered(photos, "fix"))
    (folder / "broken.png").write_bytes(b"")
    code, out, err = command("audit", folder, "--reference", sets / "reference")
    assert code == 3
    assert "no warning" in out
    assert "broken: empty" in err


def test_originals_below_other_folders_and_not_of_all(
    command: Command, sets: Path, photos: dict[str, Pixels], tmp_path: Path
) -> None:
    some = dict(list(photos.items())[:30])
    originals = save(tmp_path / "raw" / "2017" / "train", some)
    code, out, _ = command(
        "audit", sets / "fix", "--reference", sets / "reference", "--originals", tmp_path / "raw", "--json"
    )
    found = json.loads(out)
    assert originals.is_dir()
    assert (code, found["paired"]["pairs"], found["verdict"]) == (0, 30, "clean")
    assert found["paired"]["difference"]["q95"] == 0


BAD = {
    "an empty folder": (["audit", "{empty}", "--reference", "{sets}/reference"], "an empty folder"),
    "no pictures": (["audit", "{text}", "--reference", "{sets}/reference"], "no pictures here, but 1 files"),
    "a broken picture only": (["audit", "{broken}", "--reference", "{sets}/reference"], "1 unidentified"),
    "a file": (["audit", "{text}/a.txt", "--reference", "{sets}/reference"], "a file, not a folder"),
    "no such folder": (["audit", "{sets}/none", "--reference", "{sets}/reference"], "no such folder"),
    "no name": (["audit", ":svhn", "--reference", "{sets}/reference"], "the set has no name"),
    "no such manifest": (
        ["audit", "unknown-cifr", "--reference", "{sets}/fix"],
        "did you mean 'unknown-cifar'",
    ),
    "no such group": (["audit", "unknown-cifar:svnh", "--reference", "{sets}/fix"], "did you mean 'svhn'"),
    "several groups": (["audit", "unknown-cifar", "--reference", "{sets}/fix"], "several groups"),
    "a group that awaits": (["audit", "unknown-cifar:lsun", "--reference", "{sets}/fix"], "awaits lsun"),
    "groups of a plain folder": (
        ["audit", "{sets}/fix:x", "--reference", "{sets}/fix"],
        "no groups to choose",
    ),
    "no root": (["audit", "{sets}/fix"], "--root cifar100=DIR"),
    "a root of nothing": (["audit", "{sets}/fix", "--root", "cifar100={empty}"], "is empty"),
    "no such source": (["audit", "{sets}/fix", "--root", "cifar1={sets}"], "unknown source"),
    "other sizes": (["audit", "{sets}/photos", "--reference", "{sets}/fix"], "40 of 260 x 290 pixels"),
    "a reference of two sizes": (["audit", "{sets}/fix", "--reference", "{sets}"], "different sizes"),
    "no originals by these names": (
        ["audit", "{sets}/fix", "--reference", "{sets}/reference", "--originals", "{mixed}"],
        "no original has the name of a picture",
    ),
    "out in the set": (
        ["audit", "{sets}/fix", "--reference", "{sets}/reference", "--out", "{sets}/fix/out"],
        "lies inside an audited set",
    ),
    "out is a file": (
        ["audit", "{sets}/fix", "--reference", "{sets}/reference", "--out", "{text}/a.txt"],
        "cannot be written",
    ),
    "a limit of none": (["audit", "{sets}/fix", "--limit", "0"], "greater than or equal to 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str, command: Command, sets: Path, tmp_path: Path) -> None:
    places = {"sets": sets, **{name: tmp_path / name for name in ("empty", "text", "broken", "mixed")}}
    for name in ("empty", "text", "broken"):
        places[name].mkdir()
    (places["text"] / "a.txt").write_text("no picture")
    (places["broken"] / "a.png").write_text("no picture")
    save(places["mixed"], {"other": photo(7)})
    arguments, message = BAD[case]
    code, out, err = command(*(a.format(**places) for a in arguments), "--json")
    assert code == 2
    assert set(json.loads(out)) == {"error"}
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in err


def test_without_matplotlib_one_line_says_what_to_install(
    command: Command, sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ("audit", sets / "fix", "--reference", sets / "reference")
    code, _, err = command(*arguments, "--out", tmp_path / "o")
    assert code == 2
    assert "wordnet-splits[plots]" in err
    assert not (tmp_path / "o").exists()
    assert command(*arguments)[0] == 0  # figures and verdict need none
