"""`new` draws near and far classes by a threshold of similarity, those that `thresholds` counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits.command import Command
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.recipe import load_recipe

KNOWN = ["mouse", "hamster"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def test_the_classes_are_those_of_thresholds(command: Command, tmp_path: Path) -> None:
    from wordnet_splits.audit.thresholds import thresholds

    sentence = ("--id", "cifar100:mouse,hamster", "--near", "cifar100:mean=0.6", "--far", "cifar100:mean=0.4")
    assert command("new", "mice", *sentence).code == 0
    assert command("build", "mice.toml").code == 0
    rows = read_manifest(tmp_path / "build" / "mice").classes.to_pylist()
    taken = {role: sorted(r["class_id"] for r in rows if r["role"] == role) for role in ("id", "near", "far")}
    found = thresholds("cifar100", KNOWN, of="cifar100")
    assert taken["id"] == sorted(KNOWN)
    assert taken["near"] == sorted(found.at(0.6)["near"])
    assert taken["far"] == sorted(found.at(0.4)["far"])
    assert len(taken["near"]) > 1 < len(taken["far"])


def test_a_number_behind_the_threshold_is_drawn(command: Command) -> None:
    sentence = (
        "--id",
        "cifar100:mouse",
        "--near",
        "ssb-hard:path=0.2,7",
        "--far",
        "cifar100:wup_wn=0.5,9",
    )
    made = command("new", "few", *sentence, "--json").json
    assert {row["group"]: row["actual"] for row in made["groups"] if row["split"] == "classes"} == {
        "known": 1,
        "near-ssb-hard": 7,
        "far-cifar100": 9,
    }
    near, far = load_recipe(Path("few.toml")).group[1:]
    assert (near.classes.draw, far.classes.draw) == (7, 9)
    assert near.classes.value[0].value.above == 0.2
    assert far.classes.value[0].value.below == 0.5


@pytest.mark.parametrize(
    ("option", "bound", "said"),
    [
        ("--near", "distance=3", ()),
        ("--far", "meen=0.4", ("meen", "mean")),
        ("--near", "mean=0.3,x", ("x", "cifar100", "0.6", "100")),
        (
            "--near",
            "mean=2,5",
            ("0..1", "2", "cifar100", "0.6"),
        ),
        ("--near", "mean=0.99", ()),
        ("--id", "mean=0.5", ()),
    ],
)
def test_a_mistake_is_one_line(command: Command, option: str, bound: str, said: object) -> None:
    sentence = {"--id": "cifar100:mouse", "--near": "cifar100:5"} | {option: f"cifar100:{bound}"}
    found = command("new", "mice", *(word for pair in sentence.items() for word in pair))
    assert mentions(found.error, said)
    assert not Path("mice.toml").exists()


def test_one_class_is_one_class(command: Command) -> None:
    near = "caltech256:057.dolphin-101,085.goat"
    done = command("new", "mice", "--id", "cifar100:mouse,dolphin", "--near", near)
    assert "near-caltech256: 1 class dropped, such as 057.dolphin-101" in done.out + done.err


def test_it_says_what_the_thresholds_leave_out_and_the_margins(command: Command) -> None:
    from wordnet_splits.audit.thresholds import thresholds

    sentence = ("--id", "cifar100:mouse,hamster", "--near", "cifar100:mean=0.6", "--far", "cifar100:mean=0.4")
    made = command("new", "mice", *sentence, "--json").json
    counts = thresholds("cifar100", KNOWN, of="cifar100")
    between = set(counts.at(0.4)["near"]) - set(counts.at(0.6)["near"])
    (left_out,) = made["left_out"]
    side = f"{len(between)} classes left out, on the wrong side of the threshold: "
    assert left_out.startswith(f"near-cifar100 and far-cifar100: {side}")
    shown = left_out.removeprefix(f"near-cifar100 and far-cifar100: {side}").partition("; ")[0]
    names, _, more = shown.partition(" and ")
    assert set(names.split(", ")) <= between
    assert more == f"{len(between) - 20} more"
    margins = {row["class_id"]: row["margin"] for row in made["evidence"]}
    (squirrel,) = [row["value"] for row in counts.rows() if row["class_id"] == "squirrel"]
    assert margins["squirrel"] == f"{squirrel - 0.6:.4g} above the threshold 0.6"


def test_it_says_which_classes_are_kin_and_which_are_not_drawn(command: Command) -> None:
    sentence = ("--id", "cifar100:dolphin,whale", "--near", "caltech256:mean=0.45,2", "--far", "digits:0,1")
    left_out = command("new", "sea", *sentence, "--json").json["left_out"]
    drawn, kin = (
        next(line for line in left_out if reason in line)
        for reason in ("not drawn", "equal to an ID class, or above or below one")
    )
    assert "; 2 taken)" in drawn
    assert "057.dolphin-101" in kin
