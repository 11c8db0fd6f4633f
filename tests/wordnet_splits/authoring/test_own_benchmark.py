"""``docs/custom-benchmarks.md``, run as it stands; and a newcomer's mistakes, on the command line."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command, assert_printed, blocks_of, environment
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "custom-benchmarks.md").read_text(encoding="utf-8")
PAGE = PAGE.partition("\n## Hub datasets\n")[0]  # test_own_pages runs the rest
BLOCKS = blocks_of(PAGE)
CLASSES = ["golden retriever", "teapot", "zebra", "acoustic guitar"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


@pytest.mark.docs
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the loader needs torch")
    for package in ("datasets", "mlcroissant"):
        pytest.importorskip(package, reason="reads what was published")
    (tmp_path / "new").mkdir()
    for number in range(5):  # as large as those of the page: one network takes both
        own.picture(1000 + number).resize((8, 8)).save(tmp_path / "new" / f"new {number}.png")
    program = f'wordnet-splits() {{ "{sys.executable}" -m wordnet_splits.cli.main "$@"; }}\n'
    program += f'unknown-eval() {{ "{sys.executable}" -m loaders.harness.cli.main "$@"; }}\nexec 2>&1\n'
    variables = {**environment(tmp_path), "PYTHONUNBUFFERED": "1"}
    for language, block, shown in BLOCKS:
        script = re.sub(r"  # exit code (\d)$", r" || [ $? = \1 ]", block, flags=re.MULTILINE)
        start = ["bash", "-e", "-c", program + script]
        if language == "python":
            start = [sys.executable, "-c", block]
        done = subprocess.run(start, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        for said in re.findall(r"^print\(.*?\)  # (.*)$", block, re.MULTILINE):
            assert said in done.stdout
        assert_printed(shown, done.stdout)


MINE = """schema = 1
name = "mine"
[[group]]
name = "known"
role = "id"
source = "mypics"
classes = { listed = ["teapot"] }
images = { test = { from = "test", all = true } }
[[group]]
name = "unknown"
role = "near"
source = "mypics"
classes = { rest = true }
images = { test = { from = "test", all = true } }
"""


@pytest.fixture
def pics(command: Command) -> Path:
    """A declared dataset and a recipe of it, in the working folder."""
    own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 2})
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 2})
    own.declare(Path("pics"), "mypics", "folders")
    Path("mine.toml").write_text(MINE, "utf-8")
    return Path("pics")


def test_build_verify_explain_and_doctor_know_the_root(command: Command, pics: Path) -> None:
    root = ("--root", "mypics=pics")
    (built,) = command("build", "mine.toml", *root, "--json").json["built"]
    assert built["complete"]
    assert [g["actual"] for g in built["groups"] if g["split"] == "test"] == [2, 6]
    (found,) = command("verify", "build/mine", *root, "--json").json["benchmarks"]
    assert found["ok"]
    assert [(g["ids"], g["pixels"]) for g in found["groups"] if g["split"] == "test"] == [(2, 2), (6, 6)]
    row = command("explain", "build/mine", "zebra", *root, "--json").json
    assert (row["source"], row["role"], row["nearest_id"]) == ("mypics", "near", "teapot")
    states = {s["name"]: s for s in command("sources", "check", *root, "--json").json["sources"]}
    assert states["mypics"]["state"] == "complete"
    assert [s["held"] for s in states["mypics"]["splits"]] == [4, 8]


def test_a_picture_that_does_not_open(command: Command, pics: Path) -> None:
    (pics / "test" / "zebra" / "picture 1.png").write_bytes(b"no picture")
    said = command("build", "mine.toml", "--root", "mypics=pics").error
    assert mentions(said, "8")
    assert mentions(said, "test/zebra/picture")
    assert "--allow-missing" in said
    assert command("build", "mine.toml", "--root", "mypics=pics", "--allow-missing").code == 3


def test_a_picture_that_is_gone(command: Command, pics: Path) -> None:
    (pics / "test" / "zebra" / "picture 1.png").unlink()
    done = command("build", "mine.toml", "--root", "mypics=pics", "--json")
    (test,) = [g for g in done.json["built"][0]["groups"] if (g["group"], g["split"]) == ("unknown", "test")]
    assert test["status"] == "awaiting mypics"
    assert "holds 7 of 8 test images of mypics (1 classes differ)" in test["reason"]


def test_an_inventory_stands_for_the_pictures(command: Command, pics: Path) -> None:
    root = ("--root", "mypics=pics")
    made = command("sources", "inventory", "mypics", *root, "--json").json
    assert made["images"] == {"train": 4, "test": 8}
    table = pq.read_table(pics / "mypics.inventory.parquet").to_pylist()
    assert [(r["split"], r["image_id"]) for r in table] == sorted((r["split"], r["image_id"]) for r in table)
    for row in table:
        file = pics / f"{row['image_id']}.png"
        assert row["digest"] == hashlib.sha256(file.read_bytes()).digest()
        assert (row["split"], row["class_id"]) == (file.parts[1], file.parts[2])
    with_pictures = command("build", "mine.toml", *root, "--json").json["built"][0]
    for file in pics.glob("t*/*/*.png"):
        file.unlink()
    without = command("build", "mine.toml", "--out", "again", "--json").json["built"][0]
    assert without["fingerprint"] == with_pictures["fingerprint"]
    assert command("diff", "build/mine", "again/mine").code == 0
    assert command("verify", "again/mine").code == 0
    assert command("freeze", "mine", "--built", "again", "--manifests", "frozen").code == 0


def test_a_local_build_takes_what_is_there_of_an_inventory(command: Command, pics: Path) -> None:
    root = ("--root", "mypics=pics")
    command("sources", "inventory", "mypics", *root)
    whole = command("build", "mine.toml", *root, "--local", "--json").json["built"][0]
    assert whole["name"] == "mine"  # nothing is lacking
    (pics / "test" / "zebra" / "picture 0.png").unlink()
    assert mentions(command("build", "mine.toml", *root).error, "8", "mypics")
    left = command("build", "mine.toml", *root, "--local", "--json").json["built"][0]
    assert left["name"] == "mine@local"
    assert [g["actual"] for g in left["groups"] if g["split"] == "test"] == [2, 5]
    (found,) = command("verify", "build/mine@local", *root, "--json").json["benchmarks"]
    assert [p["detail"] for p in found["problems"]] == []
    assert [(g["ids"], g["pixels"]) for g in found["groups"] if g["split"] == "test"] == [(2, 2), (5, 5)]
    (found,) = command("verify", "build/mine@local", "--json").json["benchmarks"]
    assert [p["detail"] for p in found["problems"]] == []
    (pics / "test" / "zebra" / "picture 1.png").unlink()
    problems = command("verify", "build/mine@local", *root, "--json").json["benchmarks"][0]["problems"]
    assert ("image-not-by-rule", "test/zebra/picture 1") in [(p["kind"], p["image_id"]) for p in problems]


def test_inventory_make_leaves_nothing_unfinished(command: Command, pics: Path) -> None:
    killed = (
        "import os, sys; from wordnet_splits.base import files\n"
        "from wordnet_splits.cli import main; from wordnet_splits.base.terminal import runner\n"
        "files._to_disk = lambda path: os.kill(os.getpid(), 9)\n"
        "runner.run(main.app, sys.argv[1:], 'wordnet-splits')"
    )
    words = ["sources", "inventory", "mypics", "--root", "mypics=pics"]
    subprocess.run([sys.executable, "-c", killed, *words], env=environment(Path.cwd()), check=False)
    assert len(list(pics.glob(".*.part"))) == 1
    others = pics / f".mypics.tsv.{'0' * 32}.part"  # of a `catalog make` that may still run
    others.write_text("x")
    assert command(*words).code == 0
    assert list(pics.glob(".*.part")) == [others]
    command("catalog", "make", "--root", "pics", "--out", "pics/own.tsv")
    for name in ("own.tsv", "own.explained.tsv"):
        (pics / f".{name}.{'0' * 32}.part").write_text("x")
    command("catalog", "make", "--root", "pics", "--out", "pics/own.tsv")
    assert list(pics.glob(".*.part")) == [others]


def test_a_changed_picture_is_found_and_no_inventory_written_over(command: Command, pics: Path) -> None:
    root = ("--root", "mypics=pics")
    assert command("sources", "inventory", "mypics", *root).code == 0
    assert "as frozen before" in command("sources", "inventory", "mypics", *root).out
    command("build", "mine.toml", *root)
    own.picture(999).save(pics / "test" / "zebra" / "picture 0.png")
    done = command("verify", "build/mine", *root, "--json")
    assert done.code == 1
    assert [(p["kind"], p["image_id"]) for p in done.json["benchmarks"][0]["problems"]] == [
        ("altered", "test/zebra/picture 0")
    ]
    assert mentions(command("sources", "inventory", "mypics", *root).error, "inventory")


def test_an_inventory_is_complete_or_none(command: Command, pics: Path) -> None:
    broken = pics / "test" / "zebra" / "picture 1.png"
    broken.write_bytes(b"no picture")
    said = command("sources", "inventory", "mypics", "--root", "mypics=pics").error
    assert mentions(said, "12", "mypics", "test/zebra/picture")
    broken.unlink()
    said = command("sources", "inventory", "mypics", "--root", "mypics=pics").error
    assert mentions(said, "7", "8", "test")
    assert mentions(said, "make", "--root")
    assert not (pics / "mypics.inventory.parquet").exists()


def test_new_writes_what_builds_to_what_it_showed(command: Command, pics: Path) -> None:
    root = ("--root", "mypics=pics")
    sets = ("--id", "mypics:teapot", "--near", "mypics", "--far", "digits:0,1", "--far", "gaussian")
    shown = command("new", "pets", *sets, *root, "--json").json
    assert Path("pets.toml").read_text("utf-8").startswith("# Written by `wordnet-splits new`")
    counts = {(g["group"], g["split"]): g["expected"] for g in shown["groups"]}
    assert counts["near-mypics", "classes"] == 3
    assert counts["near-mypics", "test"] == 6
    assert counts["known", "train"] == 1
    assert counts["far-gaussian", "test"] == 1000
    assert {row["group"] for row in shown["evidence"]} == {"near-mypics", "far-digits", "far-gaussian"}
    built = command("build", "pets.toml", *root, "--json").json["built"][0]
    assert {(g["group"], g["split"]): g["actual"] for g in built["groups"]} == counts
    assert command("new", "pets", *sets, *root).error


def test_a_class_without_a_synset_is_neither_near_nor_far_unless_it_is_listed_by_name(
    command: Command,
) -> None:
    """The German and the Japanese for lion have no synset: a lion is no class far from a tabby."""
    classes = ["zebra", "teapot", "Löwe", "ライオン"]
    own.catalog(Path("mix.tsv"), classes, {"test": 2})
    own.declare(Path(), "mix", "folders")
    own.class_folders(Path(), classes, {"test": 2})
    done = command("new", "cats", "--id", "imagenet1k:tabby", "--far", "mix", "--root", "mix=.", "--json")
    (note,) = done.json["notes"]
    assert note in done.err
    assert note.startswith("far-mix: left out 2 classes without a synset, such as Löwe; ")

    def built() -> dict[str, dict[str, Any]]:
        assert command("build", "cats.toml", "--root", "mix=.").code == 0
        rows = load_manifest(Path("build") / "cats", check="classes").classes.to_pylist()
        return {row["class_id"]: row for row in rows if row["source"] == "mix"}

    rows = built()
    roles = {class_id: row["role"] for class_id, row in rows.items()}
    assert roles == {"zebra": "far", "teapot": "far", "Löwe": "excluded", "ライオン": "excluded"}
    evidence = rows["Löwe"]["evidence"]
    assert evidence.endswith("; not far-mix: Löwe has no synset, and the rule reads WordNet")
    recipe = Path("cats.toml").read_text("utf-8")
    (rule,) = re.findall(r"^classes = ({ not.*)$", recipe, re.MULTILINE)
    by_name = f'{{ any = [ {rule}, {{ listed = ["Löwe"] }} ] }}'
    Path("cats.toml").write_text(recipe.replace(rule, by_name), "utf-8")
    rows = built()
    assert (rows["Löwe"]["role"], rows["ライオン"]["role"]) == ("far", "excluded")


def test_a_far_class_nearer_than_the_usual_near_one_is_said(command: Command, pics: Path) -> None:
    """A retriever is nearer to a zebra than a teapot and a guitar are; a draw may part them so, too."""
    root = ("--root", "mypics=pics")
    sets = ("--near", "mypics:teapot,acoustic guitar", "--far", "mypics:golden retriever")
    shown = command("new", "wild", "--id", "mypics:zebra", *sets, *root)
    said = "1 of 1 classes is nearer to ID than the median of the near group near-mypics (mean 0."
    assert f"far-mypics classes: {said}" in shown.out
    assert said in command("build", "wild.toml", *root).out
    (built,) = command("build", "wild.toml", *root, "--json").json["built"]
    reasons = {row["group"]: row["reason"] for row in built["groups"] if row["split"] == "classes"}
    assert reasons["far-mypics"].startswith(said)
    assert "the nearest golden retriever (0." in reasons["far-mypics"]
    assert reasons["near-mypics"] == reasons["known"] == ""
    assert f"far-mypics (far): {said}" in command("distance", "build/wild").out
    (found,) = command("distance", "build/wild", "--json").json["inversions"]
    assert (found["far"], found["near"]) == ("far-mypics", "near-mypics")
    assert (found["nearer"], found["classes"]) == (1, 1)
    assert found["value"] > found["median"]
    right = ("--near", "mypics:golden retriever", "--far", "mypics:teapot,acoustic guitar")
    assert "nearer to ID" not in command("new", "tame", "--id", "mypics:zebra", *right, *root).out
    assert command("distance", "tame.toml", "--json").json["inversions"] == []


def test_new_halves_a_source_of_one_split_and_takes_kin_of_another(command: Command) -> None:
    done = command("new", "pets", "--id", "dtd:banded,dotted", "--near", "cifar100", "--far", "svhn")
    assert done.error
    assert not Path("pets.toml").exists()
    shown = command(
        "new", "pets", "--id", "caltech256:002.american-flag,056.dog", "--near", "cifar100", "--json"
    )
    counts = {(g["group"], g["split"]): g["expected"] for g in shown.json["groups"]}
    assert counts["known", "train"] + counts["known", "test"] == 97 + 102
    assert counts["near-cifar100", "classes"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "pets", "--id", "mypix", "--near", "cifar100"], ("mypix", "--id")),
        (["new", "pets", "--id", "cifar100", "--far", "svnh"], ("svnh", "--far")),
        (["new", "pets", "--id", "cifar100:hamstr", "--far", "svhn"], "hamstr"),
        (["new", "pets", "--id", "cifar100:", "--far", "svhn"], ()),
        (["new", "pets", "--id", "cifar100:101", "--far", "svhn"], "101"),
        (["new", "pets", "--id", "cifar100"], ()),
        (["new", "My Pets", "--id", "cifar100", "--far", "svhn"], ()),
        (["new", "digits", "--id", "cifar100", "--far", "svhn"], ()),
        (["new", "pets", "--id", "cifar100", "--far", "svhn", "--out", "p.tml"], ()),
        (["sources", "inventory", "dtd", "--root", "dtd=pics"], "dtd"),
        (["sources", "inventory", "mypix"], "mypix"),
        (["build", "mine.toml"], "mypics"),
        (["build", "mine.toml", "--root", "mypics=none"], "dataset.toml"),
        (["build", "mine.toml", "--root", "mypics"], ()),
        (["build", "mine.toml", "--root", "mypic=pics"], ("mypics", "mypic")),
        (["build", "mine.toml", "--roots", "mypics=pics"], "--root"),
        (["catalog", "show", "mypix"], "mypix"),
    ],
)
def test_a_mistake_is_one_line(command: Command, pics: Path, arguments: list[str], said: object) -> None:
    assert mentions(command(*arguments).error, said)


def test_odd_class_folders_each_have_an_answer(command: Command) -> None:
    for name in ("Zebra", "zebra", "Äpfel", "tea pot"):
        own.class_folders(Path("odd"), [name], {"": 1})
    Path("odd/nothing").mkdir()
    done = command("catalog", "make", "--root", "odd", "--out", "odd.tsv", "--ask-below", "0")
    assert done.code == 0
    assert "nothing" in done.err
    assert "'Zebra' and 'zebra'" in done.err
    assert "n02391049: Zebra, zebra" in done.out
