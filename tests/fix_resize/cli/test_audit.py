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
from tests.fix_resize.made_images import Pixels, photo, rendered, save
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


@pytest.mark.parametrize(
    ("name", "originals", "code", "verdict"),
    [
        ("fix", True, 0, "clean"),
        ("nearest", True, 1, "aliased"),
        ("fix", False, 0, "no warning"),
        ("nearest", False, 1, "suspicious"),
    ],
)
def test_the_verdict_and_the_exit_code(
    name: str, originals: bool, code: int, verdict: str, command: Command, sets: Path
) -> None:
    arguments = ["audit", sets / name, "--reference", sets / "reference"]
    arguments += ["--originals", sets / "photos"] if originals else []
    exit_code, out, _ = command(*arguments)
    assert exit_code == code
    assert out.splitlines()[-1].startswith(verdict)
    found = json.loads(command(*arguments, "--json")[1])
    assert (found["verdict"], found["images"], found["reference_images"]) == (verdict, 40, 60)


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
    "an empty folder": ["{empty}", "--reference", "{sets}/reference"],
    "a broken image only": ["{broken}", "--reference", "{sets}/reference"],
    "a group of a plain folder": ["{sets}/fix:x", "--reference", "{sets}/fix"],
    "no root": ["{sets}/fix"],
    "a root of nothing": ["{sets}/fix", "--root", "cifar100={empty}"],
    "no such source": ["{sets}/fix", "--root", "cifar1={sets}"],
    "other sizes": ["{sets}/photos", "--reference", "{sets}/fix"],
    "a reference of two sizes": ["{sets}/fix", "--reference", "{sets}"],
    "no originals by these names": ["{sets}/fix", "--reference", "{sets}/fix", "--originals", "{mixed}"],
    "out in the set": ["{sets}/fix", "--reference", "{sets}/reference", "--out", "{sets}/fix/out"],
    "out is a file": ["{sets}/fix", "--reference", "{sets}/reference", "--out", "{file}"],
    "a limit of none": ["{sets}/fix", "--limit", "0"],
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(
    case: str, command: Command, sets: Path, tmp_path: Path, no_roots_of_this_machine: None
) -> None:
    places = {"sets": sets, **{name: tmp_path / name for name in ("empty", "file", "broken", "mixed")}}
    for name in ("empty", "broken"):
        places[name].mkdir()
    for file in (places["file"], places["broken"] / "a.png"):
        file.write_text("not an image")
    save(places["mixed"], {"other": photo(7)})
    code, out, err = command("audit", *(a.format(**places) for a in BAD[case]), "--json")
    assert code == 2
    assert set(json.loads(out)) == {"error"}
    assert err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in err


def test_without_matplotlib_one_line_says_what_to_install(
    command: Command, sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ("audit", sets / "fix", "--reference", sets / "reference")
    code, _, err = command(*arguments, "--out", tmp_path / "o")
    assert code == 2
    assert "[plots]" in err
    assert not (tmp_path / "o").exists()
    assert command(*arguments)[0] == 0  # figures and verdict need none
