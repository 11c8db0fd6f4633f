"""A broken or hostile Hub: what it sends is bounded, waits end, and each cause has its own message."""

from __future__ import annotations

import gzip
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests import hub_server
from tests.hub_server import Fault, Handler, Hub, at_hand
from tests.raising import raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import HubError, HubUnreachableError
from wordnet_splits.hub import asking
from wordnet_splits.hub.address import Address
from wordnet_splits.hub.repository import Repository
from wordnet_splits.publishing import publish as publishing
from wordnet_splits.publishing.publish import publish
from wordnet_splits.publishing.release import Release, collect_release

from .conftest import DIGITS

MiB = 1 << 20
FILE = "/resolve/.*digits/classes.parquet"


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


def endless(handler: Handler, *headers: tuple[str, str], piece: bytes = b"x" * MiB) -> None:
    """Answer without a length until the client goes away."""
    handler.send_response(200)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(piece)
    except OSError:
        return


def zipped(handler: Handler) -> None:
    """Answer with a few bytes that expand to very many."""
    endless(handler, ("Content-Encoding", "gzip"), piece=gzip.compress(b"x" * 64 * MiB))


@pytest.mark.parametrize("answer", [endless, zipped])
def test_no_more_is_received_than_is_listed(published: Hub, splits: Command, tmp_path: Path, answer) -> None:
    published.faults.append(Fault("GET", FILE, answer=answer))
    assert "is larger than the" in splits("hub", "pull", "org/set@v1/digits", "--out", "here").error
    held = sum(p.stat().st_size for p in (tmp_path / "here").rglob("*") if p.is_file())
    assert held < MiB
    assert not (tmp_path / "here" / "digits").exists()


@pytest.mark.parametrize("following", ["", "&cursor=1", "http://127.0.0.1:1/elsewhere"])
def test_a_list_that_leads_back_or_elsewhere_ends(published: Hub, splits: Command, following: str) -> None:
    def linked(handler: Handler) -> None:
        url = following if following[:4] == "http" else published.address + handler.path + following
        handler.answer([], headers={"Link": f'<{url}>; rel="next"'})

    published.faults.append(Fault("GET", "/tree/", answer=linked, times=10**9))
    said = splits("hub", "pull", "org/set@v1", "--out", "here").error
    assert "its list of files" in said


def test_a_mirror_may_pass_on_the_links_of_the_hub(
    published: Hub, splits: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_server, "PAGE", 5)
    answer = Handler.answer

    def passed_on(handler: Handler, body: object = b"", **more: Any) -> None:
        if link := (more.get("headers") or {}).get("Link"):
            more["headers"]["Link"] = link.replace(published.address, "https://huggingface.invalid")
            links.append(link)
        answer(handler, body, **more)

    links: list[str] = []
    monkeypatch.setattr(Handler, "answer", passed_on)
    assert splits("hub", "pull", "org/set@v1/digits", "--out", "here").code == 0
    assert links


def test_a_dripping_server_is_given_up_and_gone_on_with(
    published: Hub, splits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = published.files("org/set", "v1")["digits/classes.parquet"]
    ended = threading.Event()

    def drip(handler: Handler) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        try:
            for number in range(len(content) - 1):
                handler.wfile.write(content[number : number + 1])
                if ended.wait(0.02):
                    return
        except OSError:
            return

    monkeypatch.setattr(asking, "PATIENCE", 0.1)
    monkeypatch.setattr(asking, "SLOWEST", 200)
    published.faults.append(Fault("GET", FILE, answer=drip))
    try:
        done = splits("hub", "pull", "org/set@v1/digits", "--out", "here")
    finally:
        ended.set()
    assert "too slow to wait for" in done.error
    (part,) = (tmp_path / "here").rglob("classes.parquet.part")
    received = part.read_bytes()
    assert content.startswith(received)
    assert 0 < len(received) < len(content)
    monkeypatch.setattr(asking, "PATIENCE", 600.0)
    assert splits("hub", "pull", "org/set@v1/digits", "--out", "here").code == 0


def test_a_path_that_is_listed_twice_is_refused(published: Hub, splits: Command) -> None:
    item = {"type": "file", "path": "a", "size": 1, "oid": "0" * 40}
    published.faults.append(Fault("GET", "/tree/", answer=lambda handler: handler.answer([item, item])))
    assert "lists 'a' twice" in splits("hub", "pull", "org/set@v1", "--out", "here").error


def test_a_silent_server_is_given_up(
    published: Hub, splits: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SILENCE", 0.1)
    monkeypatch.setattr(asking, "TRIES", 2)
    ended = threading.Event()
    published.faults.append(Fault("GET", "/tree/", answer=lambda handler: ended.wait(10) and None, times=2))
    try:
        done = splits("hub", "pull", "org/set@v1", "--out", "here")
    finally:
        ended.set()
    assert done.code == 2
    assert "the Hub cannot be reached" in done.err
    assert "again in 1 s" in done.err


def test_a_long_wait_is_not_waited(published: Hub, splits: Command) -> None:
    published.faults.append(Fault("GET", FILE, 429, {"Retry-After": "86400"}, times=1))
    said = splits("hub", "pull", "org/set@v1/digits", "--out", "here").error
    assert "the Hub fails: 429" in said


def test_three_causes_have_three_messages(published: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def message(*faults: Fault) -> str:
        published.faults[:] = faults
        with pytest.raises(HubError) as refused:
            Repository("org/set").files("main")
        return f"{type(refused.value).__name__}: {refused.value}"

    gated = message(Fault("GET", "/tree/", 403, {"X-Error-Code": "GatedRepo"}))
    assert gated.startswith("HubError: ")
    assert "the Hub refuses: 403" in gated
    assert "if it is gated" in gated
    failing = message(Fault("GET", "/tree/", 503, times=9))
    assert "HubUnreachableError" in failing
    assert "the Hub fails: 503" in failing
    assert "gated" not in failing
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    absent = message()
    assert "the Hub cannot be reached" in absent
    assert "gated" not in absent


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
    monkeypatch.setattr(asking, "TRIES", 1)
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
