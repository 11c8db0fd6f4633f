"""The commands on whole benchmarks, as a user meets them: tables, JSON, exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from tests.wordnet_splits.command import PROGRAM, Command, environment, spawn, start
from tests.wordnet_splits.datasets.sources.trees import IMAGENET_TRAIN, in_class_folders, write_images
from tests.wordnet_splits.recipes import FAR, KNOWN, group, visible, write_dtd, write_recipe
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.recipe import recipe_names
from wordnet_splits.benchmark.resolve import load_manifest

GROUP_KEYS = {"group", "role", "source", "split", "published", "expected", "actual", "status"}
PROBLEM_KEYS = {"kind", "source", "class_id", "image_id", "detail"}


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory) -> Path:
    """A folder with the frozen manifest of ``digits``."""
    folder = tmp_path_factory.mktemp("frozen")
    build_benchmark("digits", out=folder / "build")
    freeze(read_manifest(folder / "build" / "digits"), manifests=folder / "manifests")
    return folder / "manifests"


# -- list ------------------------------------------------------------------------------------------------


def test_list_has_every_benchmark_and_the_keys_promised(command, manifests):
    done = command("list", "--json", "--manifests", manifests)
    assert (done.code, done.err) == (0, "")
    assert list(done.json) == ["benchmarks"]
    found = {b["name"]: b for b in done.json["benchmarks"]}
    assert set(found) == set(recipe_names())
    for benchmark in found.values():
        assert {"name", "version", "paper", "groups", "fingerprint", "classes"} <= benchmark.keys()
        assert all(row.keys() >= GROUP_KEYS for row in benchmark["groups"])
    statuses = {name: {row["status"] for row in b["groups"]} for name, b in found.items()}
    assert statuses["digits"] == {"complete"}
    assert statuses["unknown-cifar-paper"] == {"awaiting list"}
    assert statuses["osc-p1"] == {"not frozen"}
    assert [name for name, b in found.items() if b["fingerprint"]] == ["digits"]


def test_list_as_a_table_says_what_list_json_says(command, manifests):
    rows = command("list", "--json", "--manifests", manifests).json["benchmarks"]
    lines = command("list", "--manifests", manifests).out.splitlines()
    listed = [line.split()[0] for line in lines[2:] if line[0] != " "]
    assert listed == [row["name"] for row in rows]
    (digits,) = (line.split() for line in lines if line.startswith("digits "))
    assert digits == ["digits", "6", "4", "2", "0", "0", "2,074", "-", "yes"]
    path = f"{manifests}/digits"
    (listed,) = command("list", path, "--json").json["benchmarks"]
    (digits,) = (row for row in rows if row["name"] == "digits")
    assert listed == {**digits, "name": path}
    assert command("list", f"{manifests}/digit").code == 2


def test_list_counts_a_class_of_two_groups_once(command):
    # imagenet-ood and imagenet-ood-train have the same 808 classes, next to 15 of SUN397
    found = {b["name"]: b for b in command("list", "--json").json["benchmarks"]}
    typical = found["places-typical-t1"]
    assert (typical["classes"]["near"], typical["classes"]["far"]) == (19, 15 + 808)
    groups = [
        row["expected"] for row in typical["groups"] if (row["role"], row["split"]) == ("far", "classes")
    ]
    assert sum(groups) > 15 + 808
    assert found["unknown-cifar-paper"]["classes"] is None


# -- build -----------------------------------------------------------------------------------------------


def test_build_prints_one_object_and_writes_the_manifest(command, tmp_path):
    done = command("build", "digits", "--json")
    assert done.code == 0
    (built,) = done.json["built"]
    assert {"name", "out", "complete", "groups", "fingerprint", "missing"} <= built.keys()
    assert (built["name"], built["complete"], built["missing"]) == ("digits", True, [])
    assert all(row.keys() >= GROUP_KEYS for row in built["groups"])
    written = json.loads((tmp_path / built["out"] / "manifest.json").read_text(encoding="utf-8"))
    assert written["fingerprint"] == built["fingerprint"]
    assert written["groups"] == built["groups"]


def test_build_prints_a_table_on_stdout_and_where_it_wrote_on_stderr(command):
    done = command("build", "digits", "--out", "here")
    assert done.code == 0
    assert mentions(done.err, "digits", "here/digits")
    cells = [line.split() for line in done.out.splitlines()]
    assert ["digits", "digits-0-5", "id", "digits", "test", "-", "360", "complete"] in cells


def test_an_awaiting_group_says_for_what_and_exits_with_0(command, tmp_path):
    done = command("build", "osc-p1", "--json")
    assert done.code == 0
    (built,) = done.json["built"]
    assert (built["complete"], built["fingerprint"]) == (False, None)
    train = next(r for r in built["groups"] if (r["group"], r["split"]) == ("known", "train"))
    assert train["status"] == "awaiting imagenet1k"
    assert (train["published"], train["expected"], train["actual"]) == (116218, 116218, None)
    assert "not known without the dataset" in train["reason"]
    table = command("build", "osc-p1").out
    assert "known train: awaiting imagenet1k: the image ids of imagenet1k train are not known" in table
    assert "(116,218)" in table


def test_a_figure_that_differs_from_the_published_one_is_explained(command):
    table = command("build", "unknown-imagenet").out
    notes = table.partition("Where published and ours differ")[2]
    assert "imagenet-200: The 200 classes hold 258,758 training images" in notes
    assert "external: 405 classes lie below a parent of an ID class" in notes
    assert "near-200" not in notes  # 200 of 200, 10,000 of 10,000
    assert notes.count("external train and val: awaiting imagenet1k") == 1


def test_missing_images_end_a_build_or_are_left_out_on_request(command, tmp_path):
    root = write_dtd(tmp_path / "dtd")
    recipe = write_recipe(tmp_path, KNOWN, FAR)
    root_flag = f"dtd={root}"
    assert command("build", recipe, "--root", root_flag).code == 0
    before = (tmp_path / "build" / "mine" / "manifest.json").read_bytes()
    chosen = sorted(p.stem for p in (root / "images" / "banded").iterdir())
    taken = set(_image_ids(tmp_path / "build" / "mine", "far"))
    gone = next(f"banded/{stem}" for stem in chosen if f"banded/{stem}" in taken)
    (root / "images" / f"{gone}.jpg").unlink()

    refused = command("build", recipe, "--root", root_flag)
    assert mentions(refused.error, "mine", "60", "dtd")
    assert gone in refused.error
    assert "--allow-missing" in refused.error
    assert (tmp_path / "build" / "mine" / "manifest.json").read_bytes() == before

    left = command("build", recipe, "--root", root_flag, "--allow-missing", "--json")
    assert left.code == 3
    (built,) = left.json["built"]
    assert built["complete"] is False
    assert [m.keys() >= PROBLEM_KEYS for m in built["missing"]] == [True]
    assert [(m["kind"], m["source"], m["image_id"]) for m in built["missing"]] == [("missing", "dtd", gone)]
    assert set(_image_ids(tmp_path / "build" / "mine", "far")) == taken - {gone}
    far = next(r for r in built["groups"] if (r["group"], r["split"]) == ("far", "test"))
    assert (far["expected"], far["actual"], far["status"]) == (60, 59, "missing 1")
    assert "1 images missing" in command("build", recipe, "--root", root_flag, "--allow-missing").err


def _image_ids(folder: Path, name: str) -> list[str]:
    table = pq.read_table(folder / "images" / "test" / f"{name}.parquet")
    ids: list[str] = table.column("image_id").to_pylist()
    return ids


def test_another_seed_and_a_local_draw_have_their_own_names_and_are_never_frozen(command, tmp_path):
    (built,) = command("build", "digits", "--seed", 4, "--json").json["built"]
    assert built["name"] == "digits@seed=4"
    root = tmp_path / "imagenet"
    write_images(root, in_class_folders(IMAGENET_TRAIN, "train"))
    wnids = sorted({class_id for _, class_id, _ in IMAGENET_TRAIN})
    images = '{ test = { from = "train", per_class = 2 } }'
    recipe = write_recipe(tmp_path, group("all", "id", "imagenet1k", f"{{ listed = {wnids} }}", images))
    arguments = ("build", recipe, "--root", f"imagenet1k={root}", "--json")

    (awaiting,) = command(*arguments).json["built"]
    assert awaiting["name"] == "mine"
    row = next(r for r in awaiting["groups"] if r["split"] == "test")
    assert row["status"] == "awaiting imagenet1k"
    assert "the root holds 9 of 1,281,167 train images" in row["reason"]

    (local,) = command(*arguments, "--local").json["built"]
    assert local["name"] == "mine@local"
    row = next(r for r in local["groups"] if r["split"] == "test")
    assert (row["actual"], row["population"], row["status"]) == (6, 9, "complete")
    assert visible(tmp_path / "build") == ["digits@seed=4", "mine", "mine@local"]
    for name in ("digits@seed=4", "mine@local"):
        assert command("freeze", name).error
    assert not (tmp_path / "manifests" / "mine@local").exists()


@pytest.mark.parametrize("verb", ["build", "verify"])
def test_a_root_that_no_benchmark_needs_is_pointed_out(command, tmp_path, verb):
    done = command(verb, "digits", "--root", f"cifar10={tmp_path}")
    assert done.code == 0
    assert "--root cifar10=... is not used: the sources needed are digits, gaussian, uniform" in done.err


def test_a_recipe_that_takes_the_name_of_another_benchmark_is_pointed_out(command, tmp_path):
    (tmp_path / "copy.toml").write_text(
        'extends = "digits"\nschema = 1\nname = "digits"\ndrop = ["uniform"]\n'
    )
    done = command("build", "copy.toml")
    assert done.code == 0
    assert "copy.toml: digits is another benchmark's name; choose a different name" in done.err
    assert "another benchmark's name" not in command("build", "digits").err


def test_a_wrong_name_is_refused_before_anything_is_built(command, tmp_path):
    assert mentions(command("build", "digits", "digts").error, "digits")
    assert not (tmp_path / "build").exists()


# -- freeze, verify, diff --------------------------------------------------------------------------------


def test_freeze_then_verify(command, tmp_path):
    command("build", "digits")
    done = command("freeze", "--all", "--json")
    assert done.code == 0
    assert done.json == {"frozen": [{"name": "digits", "out": "manifests/digits", "absent": []}]}
    done = command("verify", "--manifests", "manifests", "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    (row,) = done.json["benchmarks"]
    assert {"name", "ok", "problems"} <= row.keys()
    assert (row["name"], row["ok"], row["problems"]) == ("digits", True, [])
    table = command("verify", "digits", "--manifests", "manifests").out
    assert "  ids 714, pixels 714\n" in table
    counts = "12 classes by rule, 2,797 ids and 2,797 pixels of 2,797 images compared"
    assert table.endswith(f"\n1 of 1 benchmark agrees with its rules: {counts}\n")
    families = command("verify", "digits", "--manifests", "manifests", "--summary").out.splitlines()
    assert [line.split() for line in families[2:]] == [
        [name, "1", "1", "12", "2,797", "2,797", "2,797"] for name in ("digits", "all")
    ]
    keys = {"group", "split", "rule", "ids", "pixels", "expected"}
    assert all(group.keys() == keys for group in row["groups"])


def test_verify_says_what_was_changed_and_exits_with_1(command, tmp_path):
    command("build", "digits")
    command("freeze", "digits")
    path = tmp_path / "manifests" / "digits" / "images" / "val" / "digits-0-5.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    lost = table.column("image_id")[0].as_py()

    done = command("verify", "--manifests", "manifests", "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    problems = done.json["benchmarks"][0]["problems"]
    assert all(p.keys() >= PROBLEM_KEYS for p in problems)
    assert [p["image_id"] for p in problems if p["kind"] == "image-not-frozen"] == [lost]

    shown = command("verify", "--manifests", "manifests")
    assert shown.code == 1
    assert f"digits: 1 images image-not-frozen: {lost}" in shown.err
    problems = [line for line in shown.out.splitlines() if line.endswith(" 1 problem")]
    assert [line.split()[1:5] for line in problems] == [["digits-0-5", "id", "digits", "val"]]
    counts = "12 classes by rule, 2,796 ids and 2,796 pixels of 2,797"
    assert f"0 of 1 benchmark agrees with its rules: {counts}" in shown.out
    assert shown.out.endswith("; see the problems above\n")


def test_verify_with_a_root_names_altered_and_missing_images(command, tmp_path):
    root = write_dtd(tmp_path / "dtd")
    recipe = write_recipe(tmp_path, KNOWN, FAR)
    command("build", recipe, "--root", f"dtd={root}")
    command("freeze", "mine")
    assert command("verify", "--manifests", "manifests", "--root", f"dtd={root}").code == 0
    altered, gone = _image_ids(tmp_path / "manifests" / "mine", "far")[:2]
    path = root / "images" / f"{altered}.jpg"
    path.write_bytes(path.read_bytes() + b"!")
    (root / "images" / f"{gone}.jpg").unlink()
    done = command("verify", "--manifests", "manifests", "--root", f"dtd={root}", "--json")
    assert done.code == 1
    found = {(p["kind"], p["image_id"]) for p in done.json["benchmarks"][0]["problems"]}
    assert found == {("altered", altered), ("missing", gone)}


def test_diff_says_same_or_what_differs(command, tmp_path, manifests):
    done = command("diff", manifests / "digits", manifests / "digits", "--json")
    nothing = {"only_a": [], "only_b": [], "changed": []}
    same = {"same": True, "classes": nothing, "images": nothing, "renames": [], "words": []}
    assert (done.code, done.json) == (0, same)

    command("build", "digits", "--seed", 1)
    done = command("diff", manifests / "digits", "build/digits@seed=1", "--json")
    assert (done.code, done.json["same"]) == (1, False)
    assert done.json["classes"] == nothing
    images = done.json["images"]
    assert set(images) == {"only_a", "only_b", "changed"}
    assert len(images["only_a"]) == len(images["only_b"]) > 0
    assert {"source", "image_id", "class_id", "split"} <= images["only_a"][0].keys()

    shown = command("diff", manifests / "digits", "build/digits@seed=1").out
    assert f"images only in build/digits@seed=1: {len(images['only_b'])}" in shown
    assert shown.endswith("different\n")
    row = images["only_b"][0]
    assert f"\n  digits {row['image_id']}: {row['role']} {row['split']} in {row['group']}\n" in shown


def test_freezing_an_incomplete_build_is_refused(command, tmp_path):
    root = write_dtd(tmp_path / "dtd", ["banded"])
    recipe = write_recipe(tmp_path, KNOWN, FAR)
    assert command("build", recipe, "--root", f"dtd={root}", "--allow-missing").code == 3
    assert mentions(command("freeze", "mine").error, "30")
    assert not (tmp_path / "manifests" / "mine").exists()


# -- the program as a whole ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["lst"],
        ["build", "--sed", "1"],
        ["build", "--seed", "one"],
        ["diff", "digits"],
        ["wordnet", "tree", "--depth", "0"],
    ],
)
def test_a_wrong_command_line_is_one_line(command, arguments):
    assert "--help" in command(*arguments).error


@pytest.mark.parametrize(
    "arguments", [["build", "digts"], ["build", "--sed"], ["verify", "digts"], ["diff", "a", "b"]]
)
def test_an_error_with_json_is_one_object(command, arguments):
    done = command(*arguments, "--json")
    assert done.code == 2
    assert list(done.json) == ["error"]
    assert list(done.json["error"]) == ["kind", "what", "where", "hint", "near"]
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_a_process_of_its_own_prints_one_object(tmp_path):
    done = spawn(tmp_path, "build", "digits", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["built"][0]["fingerprint"]


def test_any_text_is_printed_whatever_the_locale(tmp_path):
    """A C locale that Python may not mend: paths become surrogates, stdout is ASCII."""
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    note = 'published = { test = 1 }\nnote = "ein Bündel Fälle"'
    root = write_dtd(tmp_path / "Wäsche", ["banded"])
    recipe = write_recipe(tmp_path, KNOWN, FAR + note)
    arguments = ("build", recipe, "--root", f"dtd={root}", "--out", "größer", "--allow-missing")
    done = spawn(tmp_path, *arguments, env=ascii_only)
    assert (done.code, "Traceback" in done.err) == (3, False)
    assert "mine: far: ein Bündel Fälle" in done.out
    assert spawn(tmp_path, "verify", "größer/mine", env=ascii_only).code in (
        0,
        1,
    )  # leaves out what is missing
    done = spawn(tmp_path, *arguments, "--json", env=ascii_only)
    assert done.code == 3
    assert done.json["built"][0]["groups"][-1]["note"] == "ein Bündel Fälle"
    assert load_manifest(tmp_path / "größer" / "mine").data.missing


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    process = start(tmp_path, "catalog", "show", "imagenet1k")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    assert (process.wait(), said) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["list"], pytest.param(["list", "--json"], marks=pytest.mark.faults)])
def test_a_full_standard_output_is_one_line(tmp_path, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: No space left on device")
    assert done.stderr.count("\n") == 1
