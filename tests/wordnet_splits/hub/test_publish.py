"""``publish`` against a Hub on this machine: one commit, a tag that stays, and nothing twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.hub_server import TOKEN, Fault, Hub
from tests.raising import mentions
from wordnet_splits.benchmark.resolve import load_manifest

from .conftest import DIGITS, OTHER

yaml = pytest.importorskip("yaml")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of benchmarks that the test may change."""
    folder = tmp_path / "mine"
    shutil.copytree(DIGITS, folder / "digits")
    return folder


def test_a_benchmark_is_published_once(hub: Hub, splits, mine: Path) -> None:
    first = splits("hub", "publish", "org/set", mine, "--revision", "v1", "--json").json
    assert first["sent"]
    assert first["tagged"]
    assert sorted(first["added"]) == sorted(hub.files("org/set", "v1").keys() - {".gitattributes"})
    for path, content in hub.files("org/set", "v1").items():
        if path.startswith("digits/") and path != "digits/croissant.json":
            assert content == (mine / path).read_bytes()
    commits, sent = dict(hub.repos["org/set"].commits), len(hub.uploaded)
    again = splits("hub", "publish", "org/set", mine, "--revision", "v1", "--json").json
    assert (again["sent"], again["commit"], len(again["same"])) == (False, first["commit"], 12)
    assert (hub.repos["org/set"].commits, len(hub.uploaded)) == (commits, sent)
    assert "holds this already" in splits("hub", "publish", "org/set", mine, "--revision", "v1").out


def test_only_what_differs_is_sent(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/set", mine, "--revision", "v1")
    hub.uploaded.clear()
    shutil.copytree(OTHER, mine / OTHER.name)
    done = splits("hub", "publish", "org/set", mine, "--revision", "v2", "--json").json
    assert done["changed"] == ["CITATION.cff", "README.md", "eval.yaml"]
    assert all(path.startswith(f"{OTHER.name}/") for path in done["added"])
    assert len(hub.uploaded) == len(done["added"]) + len(done["changed"])
    assert len(hub.repos["org/set"].commits) == 3
    assert "digits/manifest.json" not in done["added"]


def test_a_dry_run_and_a_card_send_nothing(hub: Hub, splits, mine: Path) -> None:
    dry = splits("hub", "publish", "org/set", mine, "--dry-run")
    assert "12 added" in dry.out
    assert "leave out --dry-run" in dry.out
    asked = len(hub.asked)
    card = splits("hub", "publish", "org/set", mine, "--card-only")
    assert card.out.startswith("---\npretty_name: set\n")
    assert len(hub.asked) == asked
    assert hub.repos == {}
    assert not any(line.startswith("POST") for line in hub.asked)


def test_a_private_repository_is_unseen_without_the_token(
    hub: Hub, splits, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits("hub", "publish", "org/set", mine, "--private")
    assert hub.repos["org/set"].private
    assert splits("hub", "pull", "org/set/digits").code == 0
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    assert splits("hub", "pull", "org/set/digits", "--out", "else").error


def test_the_token_is_nowhere(hub: Hub, splits, mine: Path, tmp_path: Path) -> None:
    hub.faults.append(Fault("POST", "/commit/", 500))
    shown = [splits("hub", "publish", "org/set", mine), splits("hub", "publish", "org/set", mine, "--json")]
    assert [done.code for done in shown] == [2, 0]
    assert not any(TOKEN in text for done in shown for text in (done.out, done.err))
    assert not any(TOKEN.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_without_a_token_one_line_says_how_to_get_one(
    hub: Hub, splits, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert splits("hub", "publish", "org/set", mine).error
    assert hub.repos == {}


@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", "/preupload/", 500),
        Fault("POST", "/commit/", 429, {"Retry-After": "0"}),
        Fault("POST", "/commit/", 503),
        Fault("PUT", "/lfs/", 403),
        Fault("POST", "/commit/", drop=True),
    ],
    ids=lambda fault: f"{fault.path.strip('/')}-{fault.code}{'-drop' if fault.drop else ''}",
)
def test_what_fails_half_way_is_never_seen_and_goes_on(hub: Hub, splits, mine: Path, fault: Fault) -> None:
    fault = Fault(fault.method, fault.path, fault.code, fault.headers, drop=fault.drop)
    hub.faults.append(fault)
    done = splits("hub", "publish", "org/set", mine, "--revision", "v1")
    assert fault.times == 0
    if done.code == 2:  # the Hub's library tries some requests again by itself
        cause = "cannot be reached" if fault.drop else "refuses" if fault.code == 403 else "fails"
        assert done.error.startswith(f"error: datasets/org/set: the Hub {cause}: ")
        assert list(hub.files("org/set")) == [".gitattributes"]
        assert hub.repos["org/set"].tags == {}
        assert splits("hub", "publish", "org/set", mine, "--revision", "v1").code == 0
    assert "digits/manifest.json" in hub.files("org/set", "v1")


def test_a_tag_never_moves(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/set", mine, "--revision", "v1")
    before = hub.files("org/set", "v1"), dict(hub.repos["org/set"].commits)
    shutil.copytree(OTHER, mine / OTHER.name)
    assert mentions(splits("hub", "publish", "org/set", mine, "--revision", "v1").error, "v1")
    assert (hub.files("org/set", "v1"), dict(hub.repos["org/set"].commits)) == before


def test_a_published_benchmark_is_never_left_out(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/set", mine, OTHER)
    assert mentions(splits("hub", "publish", "org/set", mine).error, OTHER.name)


def test_what_a_benchmark_no_longer_has_is_removed_and_other_files_stay(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/set", mine)
    repo = hub.repos["org/set"]
    repo.commit({**hub.files("org/set"), "digits/images/test/old.parquet": b"old", "LICENSE": b"terms"})
    done = splits("hub", "publish", "org/set", mine, "--json").json
    assert done["removed"] == ["digits/images/test/old.parquet"]
    assert hub.files("org/set")["LICENSE"] == b"terms"
    assert "digits/images/test/old.parquet" not in hub.files("org/set")


def test_a_frozen_value_never_changes_under_its_version(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/set", mine)
    tree = hub.files("org/set")
    data = json.loads(tree["digits/manifest.json"])
    data["fingerprints"]["classes"] = "0" * 64
    hub.repos["org/set"].commit({**tree, "digits/manifest.json": json.dumps(data).encode()})
    refused = splits("hub", "publish", "org/set", mine)
    assert refused.error


def test_what_does_not_verify_is_refused(hub: Hub, splits, mine: Path) -> None:
    shutil.copy(DIGITS / "images/test/uniform.parquet", mine / "digits/images/test/gaussian.parquet")
    assert splits("hub", "publish", "org/set", mine).error.startswith("error: ")
    assert hub.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hub", "publish", "nothing"], ()),
        (["hub", "publish", "org/../x"], ()),
        (["hub", "publish", "org/set@v1"], ()),
        (["hub", "publish", "org/set", "--revision", "a b"], ()),
        (["hub", "publish", "org/set", "--revision", "v1/x"], ()),
        (["hub", "publish", "org/set", "."], "manifest.json"),
        (["hub", "pull", "org"], ()),
        (["explain", "hf://datasets/org/set@v1", "seven"], ()),
    ],
)
def test_wrong_names_are_one_line(splits, words: list[str], said: object) -> None:
    assert mentions(splits(*words).error, said)


def test_the_card_has_all_that_a_reader_asks(splits, mine: Path) -> None:
    shutil.copytree(OTHER, mine / OTHER.name)
    (mine / "README.md").write_text("---\nlicense: mit\ntags: [mine]\n---\n# My set\n\nWhy it is.\n", "utf-8")
    card = splits("hub", "publish", "org/set", mine, "--card-only", "--revision", "v3").out
    _, front, text = card.split("---\n", 2)
    head = yaml.safe_load(front)
    assert (head["license"], head["tags"]) == ("mit", ["mine"])
    names = [config["config_name"] for config in head["configs"]]
    assert names == ["digits", "digits-classes", OTHER.name, f"{OTHER.name}-classes"]
    assert text.strip().startswith("# My set\n\nWhy it is.")
    for manifest in map(load_manifest, (DIGITS, OTHER)):
        assert f"### {manifest.name}" in text
        assert str(manifest.fingerprint) in text or manifest.fingerprint is None
        assert all(
            f"| {row.group} | {row.role} | {row.source} | {row.split} |" in text for row in manifest.groups
        )
    assert "hf://datasets/org/set@v3/digits" in text
    assert "CC BY 4.0" in text
    assert "@techreport{krizhevsky2009learning" in text
    (mine / "README.md").write_text("---\n[\n---\n", "utf-8")
    assert splits("hub", "publish", "org/set", mine, "--card-only").error


def test_a_benchmark_dataset_of_the_hub_has_eval_yaml(hub: Hub, splits, mine: Path) -> None:
    splits("hub", "publish", "org/plain", mine, "--no-leaderboard")
    assert "eval.yaml" not in hub.files("org/plain", "main")
    splits("hub", "publish", "org/named", mine, "--evaluation-framework", "inspect-ai")
    assert b"\nevaluation_framework: inspect-ai\n" in hub.files("org/named", "main")["eval.yaml"]
    splits("hub", "publish", "org/set", mine)
    files = hub.files("org/set", "main")
    stated = yaml.safe_load(files["eval.yaml"])
    assert "evaluation_framework" not in stated  # ours is not among those that the Hub lists
    assert stated["tasks"] == [
        {"id": "digits-near", "config": "digits", "split": "test"},
        {"id": "digits-far", "config": "digits", "split": "test"},
    ]
    assert {"name", "description"} < stated.keys()
    assert yaml.safe_load(files["CITATION.cff"])["authors"] == [{"name": "The wordnet-splits developers"}]
