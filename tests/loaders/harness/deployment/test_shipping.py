"""``export-detector`` and ``score``, as a user runs them: output, exit codes and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from scipy.stats import false_discovery_control

from loaders import UnknownDetectionSet
from loaders.harness.cli.main import app
from tests.raising import mentions
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.terminal.runner import run


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(app, list(words), "unknown-eval")
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two trained networks, results of one, an exported detector, and images."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train = (
            "train --benchmark digits --recipe digits-demo --epochs 1 --seeds 0-1 --device cpu --out models"
        )
        assert run(app, train.split(), "unknown-eval") == 0
        evaluate = "run --benchmark digits --detectors msp,energy --out results --device cpu --model"
        assert run(app, [*evaluate.split(), f"trained:{networks()[0]}"], "unknown-eval") == 0
        assert run(app, ["export-detector", "results", "--detector", "energy"], "unknown-eval") == 0
        Path("images").mkdir()
        dataset = UnknownDetectionSet("digits", role="id")
        for number in range(5):
            dataset[number][0].save(f"images/{number}.png")
    return folder


def networks() -> list[str]:
    return sorted(str(path) for path in Path("models/digits").iterdir() if not path.name.startswith("."))


@pytest.fixture
def exported(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A copy of `prepared` as the working directory; the folders of the networks."""
    shutil.copytree(prepared, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return networks()


def test_export_says_what_it_promises(exported: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "export-detector",
        "results",
        "--detector",
        "msp",
        "--out",
        "msp",
        "--store",
        "build/activations",
    )
    code, out, err = ran(capsys, *words)
    assert code == 0
    assert "rank 6 of 120 ID validation images" in out
    assert "an ID image is flagged with a probability of at most 4.96% (asked: 5.00%)" in out
    assert "results hold no fitted state" in err
    code, out, err = ran(capsys, *words)
    assert code == 2
    assert err == "error: msp: holds a detector (give another folder, or overwrite it (--overwrite))\n"
    code, out, _ = ran(capsys, *words, "--overwrite", "--json")
    facts = json.loads(out)
    assert facts["calibration"]["coverage"] == 1 - 6 / 121
    assert facts["calibration"]["rate_lo"] < 6 / 121 < facts["calibration"]["rate_hi"]
    assert facts["files"] == ["msp/detector.json", "msp/arrays.safetensors"]
    modes = {path.stat().st_mode & 0o777 for path in Path("msp").iterdir()}
    assert len(modes) == 1


def test_images_are_scored_and_problems_are_said(
    exported: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, "score", "detector", "images", "--json")
    facts = json.loads(out)
    assert code == 0
    assert [row["image"] for row in facts["images"]] == [f"images/{number}.png" for number in range(5)]
    assert facts["scored"] == 5
    assert facts["flagged"] == sum(row["confidence"] < facts["threshold"] for row in facts["images"])
    code, out, err = ran(capsys, "score", "detector", "images/1.png")
    assert code == 0
    assert "images/1.png" in out
    assert "problem" not in out
    Path("images/text.png").write_text("text")
    code, out, err = ran(capsys, "score", "detector", "images", "--out", "scores.parquet")
    assert (code, out) == (3, "")
    assert "1 not scored, the first images/text.png: not an image file" in err
    table = read_table(Path("scores.parquet"))
    assert table["problem"].null_count == 5
    assert table.slice(0, 5)["confidence"].to_pylist() == [row["confidence"] for row in facts["images"]]
    code, out, err = ran(capsys, "score", "detector", "images/text.png")
    assert code == 2
    assert err.startswith("error: images/text.png: not an image file")


def test_a_batch_is_judged_at_a_false_discovery_rate(
    exported: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("images/text.png").write_text("text")
    code, out, _ = ran(capsys, "score", "detector", "images", "--fdr", "0.3", "--json")
    facts = json.loads(out)
    scored = facts["images"][:5]
    adjusted = false_discovery_control([row["p_value"] for row in scored])
    assert code == 3
    assert [row["adjusted_p"] for row in scored] == pytest.approx(adjusted)
    assert [row["outlier"] for row in facts["images"]] == [*(adjusted <= 0.3).tolist(), None]
    batch = {"fdr": 0.3, "images": 120, "dependent": False, "outliers": sum(adjusted <= 0.3), "least": 1}
    assert facts["batch"] == batch
    words = ("score", "detector", "images", "--fdr", "0.03", "--dependent", "--out", "batch.parquet")
    assert ran(capsys, *words)[0] == 3
    assert read_table(Path("batch.parquet")).column_names[-3:] == ["adjusted_p", "outlier", "problem"]
    for words in (("--fdr", "0.008"), ("--fdr", "0.01", "--dependent"), ("--dependent",), ("--fdr", "1")):
        code, out, _ = ran(capsys, "score", "detector", "images", *words, "--json")
        assert (code, json.loads(out)["error"]["where"]) == (2, words[0].removeprefix("--")), words


def test_names_that_are_no_text_are_scored_and_written(
    exported: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pixels = Path("images/1.png").read_bytes()
    for name, content in ((b"images/caf\xe9.png", pixels), (b"images/t\xffext.png", b"text")):
        try:
            Path(os.fsdecode(name)).write_bytes(content)
        except OSError:
            pytest.skip("this file system takes text alone")
    for out in ("scores.csv", "scores.parquet"):
        assert ran(capsys, "score", "detector", "images", "--out", out)[0] == 3
    assert "images/caf\\xe9.png" in read_table(Path("scores.parquet"))["image"].to_pylist()
    assert "images/caf\\xe9.png" in Path("scores.csv").read_text("utf-8")
    code, out, _ = ran(capsys, "score", "detector", "images", "--json")
    assert (code, json.loads(out)["scored"]) == (3, 6)


@pytest.mark.parametrize("out", ["folder.csv", "images/1.png/scores.csv"])
def test_a_table_that_cannot_be_written_is_refused_before_the_work(
    exported: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr("loaders.harness.deployment.shipped_detector.load_detector", None)
    Path("folder.csv").mkdir()
    code, printed, _ = ran(capsys, "score", "detector", "images", "--out", out, "--json")
    assert (code, json.loads(printed)["error"]["where"]) == (2, out)


def test_what_cannot_be_used_is_refused_in_one_line(
    exported: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = f"trained:{exported[1]}"
    for words, message in (
        (("score", "detector", "images", "--model", other), ()),
        (("score", "results", "images"), "detector.json"),
        (("score", "detector", "nowhere"), ()),
        (("score", "detector", "images", "--out", "scores.txt"), ()),
        (("export-detector", "results", "--detector", "knn"), ("knn", "detector", "results")),
        (("export-detector", "images", "--detector", "msp", "--out", "x"), "about.json"),
        (("export-detector", "results", "--detector", "msp", "--out", "images"), ()),
        (
            ("export-detector", "results", "--detector", "msp", "--out", "x", "--model", other),
            "results",
        ),
        (
            ("export-detector", "results", "--detector", "msp", "--out", "x", "--false-alarms", "0.005"),
            ("120", "0.005", "199"),
        ),
    ):
        words = words if "--out" in words or words[0] == "score" else (*words, "--out", "x")
        code, out, err = ran(capsys, *words)
        assert (code, out) == (2, ""), words
        assert mentions(err.splitlines()[-1], message)
        assert not Path("x").exists()
    code, out, err = ran(capsys, "score", "detector", "images", "--transform", "resize-32-crop-32", "--json")
    assert code == 2  # the network takes 8 x 8 pixels
    assert "note: the calibration used another transform" in err
