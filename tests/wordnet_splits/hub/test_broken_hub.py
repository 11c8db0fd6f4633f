"""A broken or hostile Hub: wrong lists are refused, and each cause has its own message."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.hub_server import Fault, Hub, at_hand
from tests.raising import mentions, raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import HubError, HubUnreachableError
from wordnet_splits.hub import publish as publishing
from wordnet_splits.hub.publish import publish
from wordnet_splits.hub.release import Release, collect_release
from wordnet_splits.remote import Address, RemoteFile, Repository

from .conftest import DIGITS


@pytest.fixture(scope="module")
def release() -> Release:
    """A benchmark, verified once."""
    return collect_release([DIGITS])


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory, release: Release) -> Hub:
    """A Hub that holds a benchmark as v1; not to be changed."""
    with pytest.MonkeyPatch.context() as patch, at_hand(patch, tmp_path_factory.mktemp("published")) as hub:
        publish(Address("org/set"), release, tag="v1")
        return hub


@pytest.fixture
def published(hub: Hub, published_once: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A Hub that holds it as v1; nobody waits for anything."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    hub.copy_repositories(published_once)
    return hub


def test_a_path_that_is_listed_twice_is_refused(published: Hub, splits: Command) -> None:
    item = {"type": "file", "path": "a", "size": 1, "oid": "0" * 40}
    published.faults.append(Fault("GET", "/tree/", answer=lambda handler: handler.answer([item, item])))
    assert mentions(splits("hub", "pull", "org/set@v1", "--out", "here").error, "a")


def test_a_file_stays_if_the_hub_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub", reason="the Hub is asked through it")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    (tmp_path / "a.parquet").write_bytes(b"mine")
    with pytest.raises(HubUnreachableError):
        Repository("a/b").fetch(RemoteFile("a.parquet", 5, None, "0" * 40), "c" * 40, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.parquet": b"mine"}


def test_a_commit_that_is_no_hash_names_no_folder(published: Hub) -> None:
    answer = {"id": "org/set", "sha": "../../../evil"}
    published.faults.append(Fault("GET", "/revision/", answer=lambda handler: handler.answer(answer)))
    with raises(HubError):
        Repository("org/set").resolve("v1")


def test_three_causes_are_told_apart(published: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(*faults: Fault) -> HubError:
        published.faults[:] = faults
        with pytest.raises(HubError) as refused:
            Repository("org/set").files("main")
        return refused.value

    gated = refusal(Fault("GET", "/tree/", 403, {"X-Error-Code": "GatedRepo"}))
    assert not isinstance(gated, HubUnreachableError)
    assert "gated" in str(gated.hint)
    failing = refusal(Fault("GET", "/tree/", 503, times=9))
    assert isinstance(failing, HubUnreachableError)
    assert "503" in failing.what
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    absent = refusal()
    assert isinstance(absent, HubUnreachableError)
    assert failing.hint != absent.hint


def test_two_publish_at_once_and_nobody_is_told_to_log_in(
    hub: Hub, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = publishing._check_others

    def somebody_else_publishes(*given) -> None:
        before(*given)
        repo = hub.repos["org/set"]
        repo.commit({**hub.files("org/set"), "theirs.md": b"theirs"})

    publish(Address("org/set"), release)
    monkeypatch.setattr(publishing, "_check_others", somebody_else_publishes)
    with raises(HubError, where="datasets/org/set") as refused:
        publish(Address("org/set"), release, tag="v1-changes-the-card")
    assert "log in" not in str(refused.value)


def test_a_dry_run_needs_no_network(
    hub: Hub, splits: Command, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    words = ("hub", "publish", "org/set", DIGITS, "--revision", "v1", "--dry-run")
    done = splits(*words)
    assert done.code == 0
    assert "not compared with what is published: the Hub cannot be reached" in done.out
    found = splits(*words, "--json").json
    assert "digits/manifest.json" in found["added"]
    assert "cannot be reached" in found["not_compared"]
    with pytest.raises(HubUnreachableError):
        publish(Address("org/set"), release)
