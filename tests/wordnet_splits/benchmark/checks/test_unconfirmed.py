"""A synset that was proposed at low confidence is no fact: it is not frozen, published or audited as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.datasets.catalog import read_catalog

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

CLASSES = ["zebra", "monarch", "teapot"]
MONARCH = "n10628644"
HEAD = f"{own.CATALOG_HEAD}\tconfidence\tcount_test\tcount_group\n"
RECIPE = """schema = 1
name = "mine"
[[group]]
name = "known"
role = "id"
source = "mypics"
classes = { listed = ["zebra"] }
images = { test = { from = "test", all = true } }
[[group]]
name = "unknown"
role = "near"
source = "mypics"
classes = { listed = ["monarch"] }
images = { test = { from = "test", all = true } }
"""


def write(mapped: str, confidence: str, why: str = "x") -> None:
    """Write a catalog whose *monarch* was mapped so."""
    rows = [
        "zebra\t0\tzebra\t\tn02391049\texact\tx\t0.9900\t1\t",
        f"monarch\t1\tmonarch\t\t{MONARCH}\t{mapped}\t{why}\t{confidence}\t1\t",
        "teapot\t2\tteapot\t\tn04398044\tproposed\tunsure\t0.1000\t1\t",
    ]
    Path("pics/mypics.tsv").write_text("# made\n" + HEAD + "\n".join(rows) + "\n", "utf-8")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    made = Command(capsys, monkeypatch, tmp_path)
    own.class_folders(Path("pics"), CLASSES, {"test": 1})
    own.declare(Path("pics"), "mypics", "folders")
    Path("mine.toml").write_text(RECIPE, "utf-8")
    return made


def build(command: Command) -> None:
    assert command("build", "mine.toml", "--root", "mypics=pics").code == 0


@pytest.mark.parametrize("confidence", ["0.7900", ""])
def test_freeze_and_publish_name_the_class_and_its_line_until_a_person_confirms(
    command: Command, confidence: str
) -> None:
    write("proposed", confidence)
    build(command)
    for words in (
        ("freeze", "mine", "--manifests", "frozen"),
        ("hub", "publish", "me/mine", "build/mine", "--dry-run"),
    ):
        said = command(*words).error
        assert mentions(said, MONARCH, "proposed")
        assert mentions(said, "4")
        assert Path("pics/mypics.tsv").read_text("utf-8").splitlines()[3].startswith("monarch\t")
        assert "mypics.tsv" in said
        assert "`hand`" in said
        assert "teapot" not in said  # it is in no group
    write("hand", confidence)
    build(command)
    assert command("freeze", "mine", "--manifests", "frozen").code == 0


def test_a_sure_proposal_needs_nobody(command: Command) -> None:
    write("proposed", "0.8600", why="confidence 0.86: the name is a lemma")
    build(command)
    assert command("freeze", "mine", "--manifests", "frozen").code == 0


@pytest.mark.parametrize("below", [0.1, 0.999])
def test_a_row_stays_as_unsure_as_it_was_written_whatever_the_threshold_is_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, below: float
) -> None:
    from wordnet_splits.linking.catalog_maker import make_catalog
    from wordnet_splits.linking.weights import Model

    names = ["router", "mac & cheese", "hammer", "sea otter", "crane"]
    make_catalog(names, tmp_path / "own.tsv")
    before = {c.class_id for c in read_catalog(tmp_path / "own.tsv") if c.is_unconfirmed}
    assert {"mac & cheese"} <= before < set(names)
    other = replace(Model.shipped(), ask_below=below)
    monkeypatch.setattr(Model, "shipped", classmethod(lambda cls: other))
    assert {c.class_id for c in read_catalog(tmp_path / "own.tsv") if c.is_unconfirmed} == before


@pytest.mark.extensions("wordnet_splits.audit")
def test_audit_judges_no_class_by_an_unsure_proposal(command: Command) -> None:
    write("proposed", "0.7900")
    build(command)
    done = command("audit", "list", "mypics", "--root", "mypics=pics", "--against", "food101", "--json").json
    assert done["not_judged"] == ["monarch", "teapot"]
    assert [c["nearest"] is None for c in done["classes"]] == [False, True, True]
    text = command("audit", "list", "mypics", "--root", "mypics=pics", "--against", "food101").out
    assert "monarch, teapot" in text
    words = ("audit", "list", "mine:unknown", "--manifests", "build", "--against", "food101", "--json")
    of_group = command(*words).json
    assert of_group["not_judged"] == ["monarch"]


def test_a_class_without_synset_is_not_clean() -> None:
    from wordnet_splits.audit.overlaps import audit_classes

    found = audit_classes("gaussian")
    assert found.not_judged == ("all",)
    assert dict(found.summary())["none"].startswith("0 ")


@pytest.mark.extensions("wordnet_splits.linking")
def test_catalog_make_writes_no_proposal_of_confidence_nought(command: Command) -> None:
    vehicles = ["car", "truck", "bus", "bicycle", "motorcycle", "tram", "Hund", "Katze", "qqxz"]
    command("catalog", "make", *vehicles, "--out", "own.tsv")
    rows = read_catalog("own.tsv")
    assert [rows[name].wnids for name in ("Hund", "Katze", "qqxz")] == [(), (), ()]
    assert rows["Hund"].why.startswith("unsure")
    assert rows["car"].wnids != ()
    again = Path("own.tsv").read_bytes()
    command("catalog", "make", *vehicles, "--out", "own.tsv")  # none of them is a person's answer
    assert Path("own.tsv").read_bytes() == again


def test_catalog_make_keeps_the_confidence_whatever_it_was_told_to_ask(command: Command) -> None:
    from wordnet_splits.linking.proposals import propose_synsets

    for below in ("0", "1"):
        command("catalog", "make", "monarch", "crane", "sea otter", "--out", "own.tsv", "--ask-below", below)
        rows = read_catalog("own.tsv")
        proposals = propose_synsets(["monarch", "crane", "sea otter"]).proposals
        assert [rows[p.name].confidence for p in proposals] == pytest.approx(
            [p.confidence for p in proposals], abs=1e-4
        )
        assert {rows["monarch"].mapped, rows["crane"].mapped} == {"proposed"}
        Path("own.tsv").unlink()


def test_what_the_supplement_files_has_no_confidence_in_the_catalog() -> None:
    from wordnet_splits.linking.catalog_maker import proposed
    from wordnet_splits.linking.proposals import propose_synsets

    ramen = propose_synsets(["ramen"]).proposals[0]
    assert (proposed(ramen).mapped, proposed(ramen).confidence) == ("proposed", None)
