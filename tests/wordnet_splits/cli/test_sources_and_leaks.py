"""sources, leaks and cite: tables, JSON, exit codes, one-line errors."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from tests.made_manifests import altered
from tests.raising import mentions
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import write_manifest
from wordnet_splits.benchmark.recipe import load_recipe, recipe_names
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.sources import source_names


@pytest.fixture(autouse=True)
def no_manifests_of_this_machine(no_roots_of_this_machine, monkeypatch, tmp_path):
    monkeypatch.setenv("WORDNET_SPLITS_MANIFESTS", str(tmp_path / "manifests"))


@pytest.fixture
def command(capsys):
    """Run a command and return (exit code, stdout, stderr)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(app, list(arguments), "wordnet-splits")
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    return write_manifest(build_benchmark("digits").manifest, tmp_path_factory.mktemp("build"))


def test_sources_lists_all_of_them(command):
    code, out, _ = command("sources", "list")
    assert code == 0
    starts = [line.split()[0] for line in out.splitlines()[2:] if line[0] != " "]
    assert starts == list(source_names())


def test_a_source_says_where_and_how_to_get_it(command):
    code, out, _ = command("sources", "show", "svhn")
    assert code == 0
    for part in ("http://ufldl.stanford.edu/housenumbers/", "73,257", "e26dedcc434d2e4c54c9b2d4a06d8373"):
        assert part in out
    assert "WORDNET_SPLITS_ROOT_SVHN" in out
    assert "ROOT/train_32x32.mat" in out


def test_sources_as_json(command):
    code, out, _ = command("sources", "show", "tiny-imagenet", "--json")
    (row,) = json.loads(out)["sources"]
    assert code == 0
    assert row["splits"] == {"train": 100_000, "val": 10_000}
    assert (row["classes"], row["images"]) == (200, 110_000)
    assert row["files"][0]["md5"]
    assert row["bibtex"].startswith("@techreport")


def test_an_unknown_source_is_bad_input_with_near_names(command):
    code, out, err = command("sources", "show", "svhm", "--json")
    assert code == 2
    assert json.loads(out)["error"]["near"] == ["svhn"]
    assert err == (
        "error: unknown source 'svhm'; did you mean 'svhn'? (a custom dataset needs dataset.toml and "
        "--root svhm=ITS-FOLDER, or [[source]] in the recipe; see docs/custom-benchmarks.md)\n"
    )


def test_sources_check_reports_bad_roots_and_exits_with_0(command, tmp_path):
    code, out, _ = command("sources", "check", "--root", f"dtd={tmp_path / 'nowhere'}")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line and not line.startswith(" ")}
    assert "bad root" in rows["dtd"]
    assert "dtd: bad root" in rows["unknown-cifar"]
    assert mentions(out, tmp_path / "nowhere", "dtd")


def test_sources_check_of_a_root_shows_what_concerns_it(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("pics").mkdir()
    code, out, _ = command("sources", "check", "--root", "dtd=pics", "--root", "svhn=pics")
    assert code == 0
    tables = out.partition("not shown:")[0].splitlines()
    assert max(len(line) for line in tables if not line.startswith("  ")) <= 100
    rows = {line.split()[0] for line in tables if line and not line.startswith(" ")}
    users = {n for n in recipe_names() if {"dtd", "svhn"} & set(load_recipe(n).sources)}
    assert {row for row in rows - {"source", "benchmark"} if row.strip("-")} == {"dtd", "svhn"} | users
    others = len(source_names()) - 2, len(recipe_names()) - len(users)
    assert "not shown: {} other sources, and {} benchmarks\n".format(*others) in out
    whole = command("sources", "check")[1]
    assert "not shown" not in whole
    assert all(any(line.startswith(name) for line in whole.splitlines()) for name in recipe_names())
    (cifar,) = re.findall(r"^unknown-cifar .*\n(?: .*\n)*", whole, re.MULTILINE)
    assert "imagenet1k train," in cifar
    assert "lsun train" in cifar


def test_sources_check_as_json(command, digits):
    code, out, _ = command("sources", "check", "--manifests", str(digits.parent), "--json")
    found = json.loads(out)
    assert code == 0
    assert [s["name"] for s in found["sources"]] == list(source_names())
    row = next(b for b in found["benchmarks"] if b["name"] == "digits")
    assert (row["frozen"], row["complete"], row["awaits"]) == (True, True, [])
    assert row["ready"]["runs_here"] == "yes"


@pytest.mark.parametrize("flag", ["dtd", "dtd=", "dtdd=/x"])
def test_sources_check_refuses_a_malformed_root(command, flag):
    code, _, err = command("sources", "check", "--root", flag)
    assert code == 2
    assert err.startswith("error: --root: ")
    assert err.count("\n") == 1


def test_leaks_of_a_clean_manifest(command, digits):
    code, out, _ = command("audit", "leaks", str(digits))
    assert (code, out) == (
        0,
        "digits: 0 exact among what was compared, 0 groups not compared; all recorded\n",
    )


@pytest.mark.extensions("wordnet_splits.duplicates")
def test_near_duplicates_are_shown_and_do_not_change_the_exit_code(command, digits):
    words = ("audit", "near-duplicates", str(digits), "--threshold", "8")
    code, out, _ = command(*words, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["hash"], found["threshold"]) == ("dct-128", 8)
    pairs = found["pairs"]
    assert pairs
    assert max(p["distance"] for p in pairs) <= 8
    code, out, _ = command(*words)
    assert code == 0
    assert f"{len(pairs):,} pairs look alike (at most 8 of 128 bits apart)" in out
    assert f"{pairs[0]['image_a']}  {pairs[0]['image_b']}" in out


def test_leaks_that_are_not_as_recorded_exit_with_1(command, tmp_path):
    manifest = build_benchmark("digits").manifest
    claim = {"kind": "class", "a": "group:id", "b": "group:near", "count": 1, "examples": []}
    recorded = [{**claim, "severity": "known", "reason": "none"}]
    folder = write_manifest(altered(manifest, leaks=recorded), tmp_path)
    code, out, _ = command("audit", "leaks", str(folder))
    assert code == 1
    assert "class between id and near: 0, RECORDED, NOT FOUND: none" in out
    code, out, _ = command("audit", "leaks", str(folder), "--json")
    assert code == 1
    assert json.loads(out)["leaks"][0]["status"] == "recorded, not found"


def test_leaks_of_an_unknown_manifest_or_with_a_bad_threshold_is_bad_input(command, digits):
    assert command("audit", "leaks", "digts", "--manifests", str(digits.parent))[0] == 2
    code, _, err = command("audit", "near-duplicates", str(digits), "--threshold", "41")
    assert code == 2
    assert err.startswith("error: ")


def test_the_threshold_shown_is_the_library_s():
    from wordnet_splits.duplicates import near_duplicates
    from wordnet_splits.duplicates.commands import show_near_duplicates

    shown = inspect.signature(show_near_duplicates).parameters["threshold"].default
    assert shown == near_duplicates.THRESHOLD


def test_cite_prints_bibtex_alone(command):
    code, out, err = command("cite", "osc-p1")
    assert (code, err) == (0, "")
    assert out.startswith("@inproceedings{palechor2023openset,")
    assert out.count("\n@") == 3  # WordNet, ImageNet and this program
    code, as_json, _ = command("cite", "osc-p1", "--json")
    assert json.loads(as_json)["bibtex"] == out


def test_cite_says_on_stderr_that_a_paper_is_not_known(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\nname = "mine"\npaper = "me2026"\n')
    code, out, err = command("cite", str(path))
    assert code == 0
    assert "me2026" not in out
    assert "'me2026'" in err


def test_cite_refuses_an_unknown_benchmark(command):
    code, _, err = command("cite", "osc-p4")
    assert code == 2
    assert "did you mean" in err
