"""``pull`` from a Hub on this machine: nothing is taken that does not hold."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.hub_server import TOKEN, Fault, Hub, at_hand
from tests.raising import mentions
from tests.wordnet_splits.command import environment
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest.tables import evaluation_fingerprint
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.publish import publish
from wordnet_splits.hub.release import collect_release
from wordnet_splits.remote import Address

from .conftest import DIGITS, OTHER


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """A Hub that holds two benchmarks as v1; not to be changed."""
    with pytest.MonkeyPatch.context() as patch, at_hand(patch, tmp_path_factory.mktemp("published")) as hub:
        publish(Address("org/set"), collect_release([DIGITS, OTHER]), tag="v1")
        return hub


@pytest.fixture
def published(hub: Hub, published_once: Hub) -> Hub:
    """A Hub that holds two benchmarks as v1."""
    hub.copy_repositories(published_once)
    return hub


def tampered(hub: Hub, path: str, content: bytes, tag: str = "v2") -> None:
    """Publish another content of one file as a tag of its own."""
    repo = hub.repos["org/set"]
    repo.tags[tag] = repo.commit({**hub.files("org/set", "v1"), path: content})


def test_what_is_pulled_is_what_was_published(published: Hub, splits, tmp_path: Path) -> None:
    found = splits("hub", "pull", "org/set@v1", "--out", "here", "--json").json
    assert found["commit"] == published.repos["org/set"].tags["v1"]
    assert [(row["benchmark"], row["as_shipped"]) for row in found["benchmarks"]] == [
        ("digits", True),
        (OTHER.name, True),
    ]
    for folder in (DIGITS, OTHER):
        names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        here = tmp_path / "here" / folder.name
        assert names == {p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()}
        assert all((here / name).read_bytes() == (folder / name).read_bytes() for name in names)
    assert not (tmp_path / "here" / ".incoming").exists()


def test_a_benchmark_is_named_by_its_address_and_pulled_once(published: Hub, splits) -> None:
    name = "hf://datasets/org/set@v1/digits"
    assert "role       near" in splits("explain", name, "seven").out
    assert not any(OTHER.name in line for line in published.asked if "resolve" in line)
    published.asked.clear()
    assert splits("diff", name, "digits").code == 0
    assert splits("verify", name).code == 0
    assert load_manifest(name).fingerprint == load_manifest("digits").fingerprint
    assert published.asked == []


@pytest.mark.parametrize("what", ["digits/images/test/uniform.parquet", "digits/classes.parquet"])
def test_an_altered_table_is_refused(published: Hub, splits, tmp_path: Path, what: str) -> None:
    other = "digits/images/test/gaussian.parquet" if "images" in what else f"{OTHER.name}/classes.parquet"
    tampered(published, what, published.files("org/set", "v1")[other])
    assert "digits" in splits("hub", "pull", "org/set@v2/digits", "--out", "here").error
    assert not (tmp_path / "here" / "digits").exists()


def test_another_benchmark_under_a_shipped_name_is_refused(published: Hub, splits, tmp_path: Path) -> None:
    """All its fingerprints hold: only the shipped one says that it is not the benchmark of that name."""
    recipe = tmp_path / "digits.toml"
    recipe.write_text('extends = "digits"\nname = "digits"\ndrop = ["uniform"]\n', "utf-8")
    folder = build_benchmark(load_recipe(recipe), out=tmp_path / "built").folder
    assert folder is not None
    tree = {path: content for path, content in published.files("org/set").items() if path[:7] != "digits/"}
    tree |= {
        f"digits/{p.relative_to(folder).as_posix()}": p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    repo = published.repos["org/set"]
    repo.tags["v2"] = repo.commit(tree)
    said = splits("hub", "pull", "org/set@v2/digits", "--out", "here").error
    assert mentions(said, "here")
    assert not (tmp_path / "here" / "digits").exists()


def altered_manifest(hub: Hub, change: Callable[[dict[str, Any]], None], *, sealed: bool) -> None:
    """Publish ``digits`` as v2 with another manifest.json; ``sealed``: its fingerprint fits what it says."""
    data = json.loads(hub.files("org/set", "v1")["digits/manifest.json"])
    change(data)
    if sealed:
        data["fingerprints"]["evaluation"] = evaluation_fingerprint(data["recipe"], data["groups"])
    tampered(hub, "digits/manifest.json", json.dumps(data).encode())


def _normalised(data: dict[str, Any]) -> None:
    data["recipe"]["normalise"] = {"mean": [0.1, 0.2, 0.3], "sd": [0.5, 0.5, 0.5]}


def _transformed(data: dict[str, Any]) -> None:
    data["recipe"]["transforms"] = {"digits": "resize-32"}


def _noted(data: dict[str, Any]) -> None:
    data["groups"][0]["note"] = "as in the paper"


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("change", [_normalised, _transformed, _noted])
def test_an_altered_evaluation_is_refused(
    published: Hub, splits, tmp_path: Path, change: Callable[[dict[str, Any]], None], sealed: bool
) -> None:
    """No table is another, and whoever altered it may have recomputed what is said of it."""
    altered_manifest(published, change, sealed=sealed)
    refused = splits("hub", "pull", "org/set@v2/digits", "--out", "here")
    assert refused.code == 2
    assert "recomputed" not in refused.out
    assert not (tmp_path / "here" / "digits").exists()


def test_another_version_of_a_shipped_name_is_held_to_the_recipe_that_it_holds(
    published: Hub, splits, tmp_path: Path
) -> None:
    def later(data: dict[str, Any]) -> None:
        data["version"] = data["recipe"]["version"] = 2
        _normalised(data)

    altered_manifest(published, later, sealed=True)
    done = splits("hub", "pull", "org/set@v2/digits", "--out", "here", "--json")
    assert done.json["benchmarks"][0]["as_shipped"] is False
    altered_manifest(published, lambda data: (later(data), _noted(data)), sealed=True)
    published.repos["org/set"].tags["v3"] = published.repos["org/set"].tags["v2"]
    assert "groups.0.note" in splits("hub", "pull", "org/set@v3/digits", "--out", "there").error


def test_a_tag_that_moved_is_refused(published: Hub, splits, tmp_path: Path) -> None:
    assert splits("hub", "pull", "org/set@v1").code == 0
    tampered(published, "README.md", b"moved", tag="v1")
    assert mentions(splits("hub", "pull", "org/set@v1").error, "v1")
    assert splits("hub", "pull", "org/set", "--out", "main").code == 0  # a branch moves
    tampered(published, "README.md", b"again", tag="v3")
    assert splits("hub", "pull", "org/set", "--out", "main").code == 0
    assert mentions(splits("hub", "pull", "org/set@v3", "--out", "main").error, "org/set@main")


@pytest.mark.parametrize("path", ["../../outside.parquet", "/etc/outside", "digits/../../outside"])
def test_a_path_outside_the_target_is_refused(published: Hub, splits, tmp_path: Path, path: str) -> None:
    tampered(published, path, b"outside")
    assert splits("hub", "pull", "org/set@v2", "--out", "in/here").error
    assert not list(tmp_path.rglob("outside*"))


def test_a_missing_file_and_a_wrong_manifest_are_one_line(published: Hub, splits) -> None:
    tree = published.files("org/set", "v1")
    repo = published.repos["org/set"]
    without = {path: content for path, content in tree.items() if path != "digits/classes.parquet"}
    repo.tags["v2"] = repo.commit(without)
    assert mentions(splits("hub", "pull", "org/set@v2/digits").error, "classes.parquet")
    tampered(published, "digits/manifest.json", b"{}", tag="v3")
    assert mentions(splits("hub", "pull", "org/set@v3/digits").error, "manifest.json")
    assert mentions(splits("hub", "pull", "org/set@v1/digit").error, "digits")


@pytest.mark.parametrize(
    "fault",
    [Fault("GET", "/resolve/", drop=True), Fault("GET", "/resolve/", 503), Fault("GET", "/resolve/", 429)],
)
def test_an_interrupted_download_goes_on(published: Hub, splits, tmp_path: Path, fault: Fault) -> None:
    fault = Fault(fault.method, fault.path, fault.code, {"Retry-After": "0"}, drop=fault.drop)
    published.faults.append(fault)
    done = splits("hub", "pull", "org/set@v1/digits", "--out", "here")
    assert fault.times == 0
    if done.code == 2:  # the Hub's library tries some requests again by itself
        assert not (tmp_path / "here" / "digits").exists()
        assert splits("hub", "pull", "org/set@v1/digits", "--out", "here").code == 0
    assert load_manifest(tmp_path / "here" / "digits").name == "digits"


@pytest.mark.faults
def test_a_pull_that_is_interrupted_leaves_nothing_and_goes_on(published: Hub, tmp_path: Path) -> None:
    """In a process of its own, whose endpoint is set before the Hub's library is imported."""
    more = {"HF_ENDPOINT": published.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    code = "from wordnet_splits.cli import program; program()"
    words = code, "hub", "pull", "org/set@v1/digits", "--out", "here"
    started = partial(
        subprocess.Popen,
        [sys.executable, "-c", *words],
        cwd=tmp_path,
        env=environment(tmp_path, **more),
        stderr=subprocess.PIPE,
        text=True,
    )
    fault = Fault("GET", "/resolve/.*classes.parquet", held=threading.Event())
    published.faults.append(fault)
    with started() as process:
        while fault.times and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert fault.held is not None
    fault.held.set()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not (tmp_path / "here" / "digits").exists()
    with started() as process:
        said = process.communicate()[1]
    assert process.returncode == 0, said
    assert load_manifest(tmp_path / "here" / "digits").fingerprint == load_manifest("digits").fingerprint


def test_no_hub_at_all_is_one_line(hub: Hub, splits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    said = splits("hub", "pull", "org/set").error
    assert said.count("the Hub cannot be reached: ") == said.count("refused") == 1
    assert "gated" not in said


@pytest.mark.docs
def test_the_cards_examples_run_as_printed(published: Hub, tmp_path: Path) -> None:
    """`datasets`, pandas, polars, DuckDB and our loader; the endpoint is set before they are imported."""
    for package in ("datasets", "pandas", "duckdb", "polars", "torch"):
        pytest.importorskip(package)
    blocks = re.findall(r"```python\n(.*?)```", published.files("org/set", "v1")["README.md"].decode(), re.S)
    assert len(blocks) == 4
    told = ("len(images), len(classes)", "len(images)", "len(images)", "len(test)")
    said = [f"print({what})" for what in told]
    script = "\n".join(f"{block}{line}" for block, line in zip(blocks, said, strict=True))
    more = {"HF_ENDPOINT": published.address, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": TOKEN}
    more |= {"HF_HUB_DISABLE_XET": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    manifest = load_manifest("digits")
    group = next(iter(manifest.parts))[1]
    whole, first = (manifest.images("test", name).num_rows for name in (None, group))
    assert list(map(int, done.stdout.split())) == [whole, len(manifest.classes), first, first, whole]
