"""A benchmark of one's own, published and pulled: what it carries is carried, compared, and bounded."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub_server import Hub, at_hand
from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import ManifestError, SplitsError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run

pytestmark = [
    pytest.mark.extensions("wordnet_splits.authoring"),
    pytest.mark.usefixtures("own_datasets_forgotten"),
]

CLASSES = ["golden retriever", "teapot", "zebra", "acoustic guitar"]
ROOT = ("--root", "mypics=pics")
CARRIED = ["mypics.inventory.parquet", "mypics.toml", "mypics.tsv"]


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hub, Path]:
    """A Hub that holds the benchmark as v1, and the folder where it was made; neither is to be changed."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch, at_hand(patch, folder) as hub:
        patch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
        patch.chdir(folder)
        own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 2})
        own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 2})
        own.declare(Path("pics"), "mypics", "folders", 'licence = "CC0"\n')
        run_quietly("sources", "inventory", "mypics", *ROOT)
        run_quietly("new", "mine", "--id", "mypics:golden retriever,teapot", "--near", "mypics", *ROOT)
        own.attribute(Path("mine.toml"))
        run_quietly("build", "mine.toml", *ROOT)
        for path in (*Path("pics").glob("mypics.*"), Path("pics/dataset.toml"), Path("mine.toml")):
            path.unlink()
        patch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
        done = json.loads(
            run_quietly("hub", "publish", "org/mine", "build/mine", "--revision", "v1", *ROOT, "--json")
        )
        assert {f"mine/sources/{name}" for name in CARRIED} <= set(done["added"])
        return hub, folder


def run_quietly(*words: str) -> str:
    """Run a command that succeeds; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(app, list(words), "wordnet-splits")
    assert code == 0, err.getvalue()
    return out.getvalue()


@pytest.fixture
def published(hub: Hub, splits: Command, published_once: tuple[Hub, Path], tmp_path: Path) -> Hub:
    """A Hub that holds the benchmark as v1; nobody knows the dataset any more."""
    hub.copy_repositories(published_once[0])
    for name in ("pics", "build"):
        shutil.copytree(published_once[1] / name, tmp_path / name)
    return hub


def test_a_stranger_pulls_verifies_and_loads_it(published: Hub, splits: Command) -> None:
    name = "hf://datasets/org/mine@v1/mine"
    (found,) = splits("verify", name, *ROOT, "--json").json["benchmarks"]
    assert found["ok"]
    assert all(g["pixels"] == g["expected"] for g in found["groups"] if g["split"] != "classes")
    manifest = load_manifest(name)
    assert manifest.fingerprint == load_manifest("build/mine").fingerprint
    assert manifest.folder is not None
    for file in CARRIED:
        published_bytes = published.files("org/mine", "v1")[f"mine/sources/{file}"]
        assert (manifest.folder / "sources" / file).read_bytes() == published_bytes
    assert splits("build", name, *ROOT, "--out", "again").code == 0
    assert splits("diff", name, "again/mine").code == 0
    again = splits("hub", "publish", "org/mine", "build/mine", "--revision", "v1", "--json").json
    assert not again["sent"]
    pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    assert len(UnknownDetectionSet(name, role="near", roots={"mypics": "pics"})) == 4


def test_card_and_croissant_name_what_is_carried(published: Hub) -> None:
    files = published.files("org/mine", "v1")
    assert "| mypics | own dataset, layout folders | CC0 |" in files["README.md"].decode()
    assert (
        "wordnet-splits build hf://datasets/org/mine@v1/mine --root mypics=DIR" in files["README.md"].decode()
    )
    told = json.loads(files["mine/croissant.json"])
    assert {f"sources/{name}" for name in CARRIED} < {one["contentUrl"] for one in told["distribution"]}
    assert "rai:hasSyntheticData" not in told  # nobody said how the images were made
    (origin,) = told["prov:wasDerivedFrom"]
    assert (origin["@id"], origin["sc:license"]) == ("urn:dataset:mypics", "CC0")


@pytest.mark.parametrize("name", CARRIED)
def test_an_altered_file_is_refused(published: Hub, splits: Command, name: str) -> None:
    path = f"mine/sources/{name}"
    repo, files = published.repos["org/mine"], published.files("org/mine", "v1")
    repo.tags["v2"] = repo.commit({**files, path: files[path].replace(b"mypics", b"mypix2") + b"\n"})
    assert "mypics" in splits("hub", "pull", "org/mine@v2", "--out", "here").error
    assert not Path("here/mine").exists()
    repo.tags["v3"] = repo.commit({p: content for p, content in files.items() if p != path})
    assert mentions(splits("hub", "pull", "org/mine@v3", "--out", "there").error, f"sources/{name}")


def _without_rows(text: bytes) -> bytes:
    return text[: text.index(b"\n") + 1]


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("mypics.tsv", _without_rows),
        ("mypics.tsv", lambda text: b"\n".join([*text.split(b"\n")[:-2], b""])),
        ("mypics.toml", lambda text: text.replace(b"layout", b"layuot")),
        ("mypics.inventory.parquet", lambda text: b"PAR1" + text),
    ],
)
def test_what_the_carried_files_say_is_checked(
    published: Hub, splits: Command, file: str, change: Callable[[bytes], bytes]
) -> None:
    """Whoever alters them writes their new SHA-256 into manifest.json."""
    repo, files = published.repos["org/mine"], dict(published.files("org/mine", "v1"))
    changed = change(files[f"mine/sources/{file}"])
    data = json.loads(files["mine/manifest.json"])
    key = {"mypics.tsv": "catalog", "mypics.toml": "declaration"}.get(file, "inventory")
    data["fingerprints"]["sources"][0][key] = hashlib.sha256(changed).hexdigest()
    files |= {f"mine/sources/{file}": changed, "mine/manifest.json": json.dumps(data).encode()}
    repo.tags["v2"] = repo.commit(files)
    refused = splits("hub", "pull", "org/mine@v2", "--out", "here")
    assert refused.code == 2
    assert "mypics" in refused.error
    assert not Path("here/mine").exists()
    for path in files:  # the loaders read what lies on a disk
        if path.startswith("mine/"):
            Path("there", path).parent.mkdir(parents=True, exist_ok=True)
            Path("there", path).write_bytes(files[path])
    with raises(SplitsError, naming="mypics"):
        load_manifest(Path("there/mine"))


def test_a_version_beyond_all_tables_is_refused(published: Hub, splits: Command) -> None:
    repo, files = published.repos["org/mine"], published.files("org/mine", "v1")
    data = json.loads(files["mine/manifest.json"])
    data["version"] = data["recipe"]["version"] = 10**30
    repo.tags["v2"] = repo.commit({**files, "mine/manifest.json": json.dumps(data).encode()})
    assert "version" in splits("hub", "pull", "org/mine@v2", "--out", "here").error


def test_a_file_too_large_is_not_even_received(published: Hub, splits: Command) -> None:
    repo, files = published.repos["org/mine"], published.files("org/mine", "v1")
    repo.tags["v2"] = repo.commit({**files, "mine/sources/mypics.tsv": b"#" * (17 << 20)})
    published.asked.clear()
    said = splits("hub", "pull", "org/mine@v2", "--out", "here").error
    assert mentions(said, "sources/mypics.tsv", "17,825,792", "16,777,216")
    assert not any("mypics.tsv" in line for line in published.asked)


def test_a_snapshot_verifies_and_loads_from_a_folder_and_from_the_cache(
    published: Hub, splits: Command
) -> None:
    """`huggingface_hub` fetches all files, and keeps them as links to the blobs of its cache."""
    from huggingface_hub import snapshot_download

    common = {"repo_type": "dataset", "revision": "v1", "endpoint": published.address}
    copied = Path(snapshot_download("org/mine", local_dir="copied", **common))
    linked = Path(snapshot_download("org/mine", cache_dir="cache", **common))
    assert (linked / "mine/sources/mypics.tsv").is_symlink()
    for place in (copied, linked):
        assert (place / "mine/croissant.json").is_file()
        assert splits("verify", place / "mine", *ROOT, "--json").json["benchmarks"][0]["problems"] == []
        assert load_manifest(place / "mine").name == "mine"
    secret = Path("secret.tsv")
    secret.write_bytes((linked / "mine/sources/mypics.tsv").read_bytes())
    (linked / "mine/sources/mypics.tsv").unlink()
    (linked / "mine/sources/mypics.tsv").symlink_to(secret.absolute())
    assert splits("verify", linked / "mine").code == 1
    with raises(ManifestError, where="mine"):
        load_manifest(linked / "mine")


def test_companions_of_a_manifest_are_no_strangers_and_stay(published: Hub, splits: Command) -> None:
    pytest.importorskip("mlcroissant")
    assert splits("freeze", "mine", "--manifests", "frozen").code == 0
    frozen = Path("frozen/mine")
    assert splits("hub", "croissant", frozen, "--out", frozen / "croissant.json").code == 0
    for name in ("README.md", ".gitattributes", "classes.parquet.dvc", "images/test/known.parquet.dvc"):
        (frozen / name).write_text("kept\n", "utf-8")
    assert splits("verify", frozen, *ROOT).code == 0
    assert splits("freeze", "mine", "--manifests", "frozen").code == 0
    assert (frozen / "images/test/known.parquet.dvc").read_text("utf-8") == "kept\n"
    assert (frozen / "croissant.json").is_file()
    described = (frozen / "croissant.json").read_text("utf-8")
    digest = hashlib.sha256((frozen / "classes.parquet").read_bytes()).hexdigest()
    (frozen / "croissant.json").write_text(described.replace(digest, "0" * 64), "utf-8")
    assert "croissant.json describes another classes.parquet" in splits("verify", frozen, "--json").out
    (frozen / "croissant.json").write_text("[]", "utf-8")
    assert "croissant.json cannot be read" in splits("verify", frozen, "--json").out
    (frozen / "other.json").write_text("{}", "utf-8")
    assert "stray-file" in splits("verify", frozen, *ROOT, "--json").out


def test_what_a_branch_dropped_is_taken_away(published: Hub, splits: Command) -> None:
    repo, files = published.repos["org/mine"], published.files("org/mine", "v1")
    first = repo.commit({**files, **{p.replace("mine/", "old/", 1): c for p, c in files.items()}})
    renamed = json.loads(files["mine/manifest.json"])
    renamed["name"] = renamed["recipe"]["name"] = "old"
    tree = {**published.files("org/mine", first), "old/manifest.json": json.dumps(renamed).encode()}
    repo.commit(tree)
    Path("here/own").mkdir(parents=True)
    Path("here/own/manifest.json").write_text("{}", "utf-8")
    assert splits("hub", "pull", "org/mine", "--out", "here").code == 0
    assert sorted(p.parent.name for p in Path("here").glob("*/manifest.json")) == ["mine", "old", "own"]
    last = repo.commit(files)
    done = splits("hub", "pull", "org/mine", "--out", "here", "--json").json
    assert done["dropped"] == ["old"]
    assert sorted(p.parent.name for p in Path("here").glob("*/manifest.json")) == ["mine", "own"]
    record = json.loads(Path("here/pulled.json").read_text("utf-8"))
    assert record["benchmarks"] == {"mine": last}
