"""``publish --to``, and ``pull`` from a folder: no foreign file is lost, no wrong one taken."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.pulling import SUMS, parse_sums
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.publish import publish_folder
from wordnet_splits.hub.release import collect_release

from .conftest import DIGITS, OTHER

yaml = pytest.importorskip("yaml")


def tree(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a folder by path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder of one benchmark; not to be changed."""
    folder = tmp_path_factory.mktemp("published") / "set"
    publish_folder(collect_release([DIGITS]), folder)
    return folder


@pytest.fixture
def published(published_once: Path, tmp_path: Path) -> Path:
    """A published folder that the test may change, called ``set`` in the working directory."""
    return Path(shutil.copytree(published_once, tmp_path / "set"))


def test_the_folder_holds_what_would_be_uploaded(hub, splits, tmp_path: Path) -> None:
    done = splits("hub", "publish", "org/set", DIGITS, "--out", "set", "--json").json
    assert done["sent"]
    assert hub.asked == [], "nothing is uploaded"
    splits("hub", "publish", "org/set", DIGITS)
    uploaded = {p: c for p, c in hub.files("org/set").items() if p != ".gitattributes"}
    written = tree(tmp_path / "set")
    sums = written.pop(SUMS).decode()
    assert written == uploaded
    assert parse_sums(sums, "") == {p: hashlib.sha256(content).hexdigest() for p, content in written.items()}
    assert subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=tmp_path / "set").returncode == 0
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".set")]


def test_publishing_again_changes_nothing(published: Path, splits) -> None:
    before = published.stat().st_mtime_ns, tree(published)
    done = splits("hub", "publish", DIGITS, "--out", "set")
    assert "holds this already" in done.out
    assert (published.stat().st_mtime_ns, tree(published)) == before
    dry = splits("hub", "publish", DIGITS, OTHER, "--out", "set", "--dry-run")
    assert "README.md" in dry.out
    assert tree(published) == before[1]
    assert splits("hub", "publish", DIGITS, OTHER, "--out", "set").code == 0
    assert (published / OTHER.name / "manifest.json").is_file()
    assert splits("hub", "publish", DIGITS, "--out", "set").error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: (f / "notes.txt").write_text("mine"), "notes.txt"),
        (lambda f: (f / "README.md").write_text("mine"), "README.md"),
        (lambda f: (f / SUMS).unlink(), f"holds other files, and no {SUMS}"),
        (lambda f: (f / SUMS).write_text("what?\n"), ()),
    ],
)
def test_what_was_not_published_is_never_overwritten(
    published: Path, splits, change: Callable[[Path], object], said: object
) -> None:
    change(published)
    before = tree(published)
    assert mentions(splits("hub", "publish", DIGITS, OTHER, "--out", "set").error, said)
    assert tree(published) == before


def test_a_file_in_the_way_and_a_tag_of_a_folder_are_refused(splits, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert splits("hub", "publish", DIGITS, "--out", "file").error
    assert splits("hub", "publish", DIGITS, "--out", "x", "--revision", "v1").error
    assert mentions(splits("hub", "publish").error, "--out")


def test_a_published_value_never_changes_under_its_version(published: Path, splits, tmp_path: Path) -> None:
    data = json.loads((published / "digits/manifest.json").read_text("utf-8"))
    data["fingerprints"]["classes"] = "0" * 64
    (published / "digits/manifest.json").write_text(json.dumps(data), "utf-8")
    resum(published)
    assert splits("hub", "publish", DIGITS, "--out", "set").error


def resum(folder: Path) -> None:
    """Write the checksums anew, as somebody who alters a published folder would."""
    files = {path: content for path, content in tree(folder).items() if path != SUMS}
    lines = [f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in sorted(files.items())]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def test_what_is_pulled_from_a_folder_is_what_was_published(published: Path, splits, tmp_path: Path) -> None:
    done = splits("hub", "pull", "./set", "--out", "here")
    assert "use one as here/digits" in done.out
    assert set(tree(tmp_path / "here" / "digits")) == set(tree(DIGITS))
    assert load_manifest(tmp_path / "here/digits").fingerprint == load_manifest("digits").fingerprint
    (row,) = splits("hub", "pull", str(published / "digits"), "--json").json["benchmarks"]
    assert load_manifest(row["folder"]).name == "digits"
    assert splits("verify", "set/digits").code == 0


def test_the_card_tells_how_to_read_the_folder(published: Path) -> None:
    datasets = pytest.importorskip("datasets")
    card = (published / "README.md").read_text("utf-8")
    assert 'load_dataset("FOLDER", "digits", split="test")' in card
    assert "sha256sum -c SHA256SUMS" in card
    assert "hf://" not in card
    images = datasets.load_dataset(
        str(published), "digits", split="test", cache_dir=str(published.parent / "c")
    )
    assert len(images) == load_manifest("digits").images("test").num_rows


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: swap(f), "SHA"),
        (lambda f: (f / "digits/classes.parquet").unlink(), ""),
        (lambda f: (f / SUMS).write_text(re.sub("(?m)^.{64}", "0" * 64, (f / SUMS).read_text())), "SHA"),
        (lambda f: (f / SUMS).write_text("<html>\n"), ()),
        (lambda f: (f / SUMS).write_text(f"{'0' * 64}  ../outside\n"), ()),
        (lambda f: (f / SUMS).write_text(f"{'0' * 64}  a\n" * 2), "a"),
        (lambda f: (f / SUMS).write_text(f"{'0' * 64}  a\n"), ()),
        (lambda f: (f / SUMS).unlink(), ""),
        (lambda f: (swap(f), resum(f)), "digits"),
    ],
    ids=["altered", "missing", "sums", "html", "outside", "twice", "no-manifest", "no-sums", "resealed"],
)
def test_a_wrong_folder_is_refused_in_one_line(
    published: Path, splits, tmp_path: Path, change: Callable[[Path], object], said: object
) -> None:
    change(published)
    assert mentions(splits("hub", "pull", "./set", "--out", "here").error, said)
    assert not (tmp_path / "here" / "digits").exists()


def swap(folder: Path) -> None:
    """Put the table of other images in a table's place."""
    shutil.copyfile(
        folder / "digits/images/test/gaussian.parquet", folder / "digits/images/test/uniform.parquet"
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("./nowhere", ()),
        ("https://example.org/set", "names no repository"),
        ("org/set", "is a folder here"),
    ],
)
def test_an_address_of_nothing_is_refused(
    published: Path, splits, tmp_path: Path, address: str, said: object
) -> None:
    shutil.copytree(published, tmp_path / "org/set")
    assert mentions(splits("hub", "pull", address).error, said)


def test_checksums_of_sha256sum_in_binary_mode_are_read() -> None:
    assert parse_sums(f"{'0' * 64} *a b\n", "") == {"a b": "0" * 64}
    with raises(ManifestError, naming="2"):
        parse_sums(f"{'0' * 64}  a\n\n", "")


def test_without_a_place_nothing_is_published(splits) -> None:
    assert splits("hub", "publish").code == 2
