"""Bad input: each kind is one clear line and its exit code, and nothing half-written is left."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.datasets.sources.trees import IMAGENET_VAL, jpeg, tar_bytes, val_tar, write_images
from tests.wordnet_splits.recipes import FAR, KNOWN, group, visible, write_dtd, write_recipe
from wordnet_splits.datasets.sources import small_images


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def test_a_name_of_megabytes_is_not_printed_whole(command: Command) -> None:
    assert len(command("build", "x" * 5_000_000, "--out", "out").error) < 5000
    assert len(command("verify", f"/{'x/' * 2_000_000}").error) < 5000


def test_an_empty_argument_is_not_the_working_directory(command: Command, tmp_path: Path) -> None:
    line = command("build", "digits", "--out", "").error  # as of "$OUT" where nothing has set it
    assert mentions(line, "--out")
    assert command("build", "digits", "--out=").error.startswith("error: --out: an empty argument")
    assert command("build", "").error.startswith("error: after build: an empty argument")
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def refused(command, tmp_path) -> Callable[..., str]:
    """Build ``mine`` and return the one line with which it is refused; nothing is left in the folder."""

    def build(*arguments: object) -> str:
        line = command("build", *arguments, "--out", "out").error
        out = tmp_path / "out"
        left = sorted(p.name for p in out.iterdir()) if out.exists() else []
        # what was read before the error is kept for the next build, and nothing else
        assert [name for name in left if not name.endswith((".lock", ".journal"))] == []
        return line

    return build


# -- recipes ---------------------------------------------------------------------------------------------

RECIPES: dict[str, tuple[str, object]] = {
    "key-of-another-table": (f'{KNOWN}doi = "10.5281/zenodo.1"\n', "doi"),
    "key": (KNOWN.replace("images", "imges"), ("imges", "images", "8")),
    "key-inside": (KNOWN.replace("from", "form"), ("form", "from", "8")),
    "operator": (KNOWN.replace("listed", "lsted"), ("lsted", "listed", "7")),
    "similarity": (
        KNOWN.replace('listed = ["0"]', 'similarity = { to = ["0"], measur = "mean", above = 0.5 }'),
        ("measur", "measure", "7"),
    ),
    "extends": (f'extend = "digits"\n{KNOWN}', ("extend", "extends", "3")),
    "image-rule": (
        KNOWN.replace("all = true", "perclass = 1"),
        "per_class",
    ),
    "declaration": ('layout = "csv"\n', ()),
    "role": (KNOWN.replace('"id"', '"known"'), ("id", "near", "5", "group.0.role")),
    "syntax": (KNOWN + "[[group", ()),
    "no-images-rule": (
        KNOWN.replace("all = true", "all = true, rest = true"),
        "per_class",
    ),
    "source": (
        KNOWN.replace('"digits"', '"digts"'),
        ("known", "digts", "digits"),
    ),
    "class": (
        KNOWN.replace('"0"', '"00"'),
        ("digits", "00", "0", "mine.toml"),
    ),
    "group": (
        KNOWN.replace('["0"]', '"group:id"'),
        ("id", "mine.toml", "7"),
    ),
    "list": (
        KNOWN.replace('["0"]', '"list:openood/cifar10_val_tinn"'),
        "openood/cifar10_val_tin",
    ),
    "split": (
        KNOWN.replace('from = "all"', 'from = "train"'),
        "train",
    ),
    "column": (
        KNOWN.replace('listed = ["0"]', 'draw = 1, within = "superclas"'),
        "superclass",
    ),
    "classes-overlap": (
        KNOWN + group("again", "near", "digits", '{ listed = ["0"] }'),
        ("mine.toml", "14"),
    ),
    "images-overlap": (
        KNOWN + group("again", "near", "digits", '{ listed = ["0"] }', more="reuse = true"),
        ("mine.toml", "14"),
    ),
    "classes-leak": (
        KNOWN.replace("all = true", "per_class = 5")
        + KNOWN.replace("known", "again").replace('"id"', '"near"').replace("all = true", "per_class = 5")
        + "reuse = true\n",
        ("known", "again"),
    ),
    "too-many-images": (
        KNOWN.replace("all = true", "per_class = 500"),
        ("0", "500", "178"),
    ),
    "too-many-in-total": (
        KNOWN.replace("all = true", "total = 500"),
        ("0", "500", "178"),
    ),
    "too-many-classes": (
        KNOWN.replace('listed = ["0"]', "rest = true, draw = 11"),
        ("11", "10"),
    ),
}


@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe_that_cannot_be(refused, tmp_path, kind):
    groups, said = RECIPES[kind]
    line = refused(write_recipe(tmp_path, groups))
    assert mentions(line, said)
    assert "mine" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop = 3", "`drop` must be a list of group names"),
        ('drop = ["uniforn"]', "unknown group to drop 'uniforn'; did you mean 'uniform'"),
        ("group = [1]", "`group` must be a list of tables"),
        ("known_leak = 1", "`known_leak` must be a list of tables"),
        ("group = [{ name = [1] }]", "group.4."),
    ],
)
def test_a_variant_that_cannot_be(refused, tmp_path, text, said):
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "digits"\nname = "mine"\n{text}\n')
    assert said in refused(path)


def test_noise_that_fills_the_memory(refused, tmp_path):
    for images, shape in (("1_000_000_000", "[8, 8, 1]"), ("3", "[1_000_000, 8, 1]")):
        rule = f"{{ test = {{ generate = {images} }} }}"
        noise = group("noise", "far", "gaussian", "{ rest = true }", rule, f"noise = {{ shape = {shape} }}")
        assert refused(write_recipe(tmp_path, KNOWN, noise))


def test_a_recipe_file_that_cannot_be_read(refused, tmp_path):
    assert mentions(refused("nowhere.toml"), "nowhere.toml")
    (tmp_path / "folder.toml").mkdir()
    assert mentions(refused("folder.toml"), "folder.toml")
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00")
    assert mentions(refused("noise.toml"), "noise.toml")
    (tmp_path / "empty.toml").touch()
    assert mentions(refused("empty.toml"), "empty.toml", "schema")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "unknown-cifr"), "unknown-cifar"),
        (("build", "unknown-cifar-paper"), "kim2023/cifar-40"),
        (("build",), ("--all", "digits")),
        (("build", "digits", "--all"), "--all"),
        (("build", "digits", "--root", "cifar=x"), ("cifar", "cifar10")),
        (("build", "digits", "--root", "cifar10"), "cifar10"),
        (("verify", "unknown-cifr"), "unknown-cifar"),
        (("verify", "--manifests", "nowhere"), "nowhere"),
        (("freeze", "digits"), ("build", "digits")),
        (("freeze", "digit"), ("digit", "build")),
        (("freeze", "./digits"), ("./digits", "digits")),
        (
            ("build", "made/mine", "--root", "mine=."),
            "made/mine",
        ),
        (("freeze", "--all"), "build"),
        (("diff", "digits", "digts"), ("digts", "digits")),
        (("explain", "digits", "elevn"), ("elevn", "seven")),
    ],
)
def test_names_that_do_not_exist(command, arguments, said):
    assert mentions(command(*arguments).error, said)


def test_verifying_nothing_is_no_success(command, tmp_path):
    (tmp_path / "empty").mkdir()
    assert command("verify", "--manifests", "empty").error


def test_a_damaged_manifest(command, tmp_path):
    command("build", "digits")
    path = tmp_path / "build" / "digits" / "images" / "test" / "uniform.parquet"
    path.write_bytes(path.read_bytes()[:200])
    assert mentions(command("freeze", "digits").error, "uniform.parquet")
    assert not (tmp_path / "manifests" / "digits").exists()
    (tmp_path / "build" / "digits" / "manifest.json").write_text('{"schema": 1, ')
    assert command("diff", "build/digits", "build/digits").error


# -- roots -----------------------------------------------------------------------------------------------


@pytest.fixture
def far(tmp_path) -> Path:
    """A recipe with two classes of DTD."""
    return write_recipe(tmp_path, KNOWN, FAR)


@pytest.fixture
def dtd(tmp_path) -> Path:
    return write_dtd(tmp_path / "dtd")


def test_a_root_that_is_not_there_or_empty_or_a_file(refused, far, tmp_path):
    assert mentions(refused(far, "--root", "dtd=nowhere"), "dtd", "nowhere")
    (tmp_path / "empty").mkdir()
    assert mentions(refused(far, "--root", "dtd=empty"), "dtd", "empty")
    (tmp_path / "dtd.tar.gz").write_bytes(b"\x1f\x8b")
    line = refused(far, "--root", "dtd=dtd.tar.gz")
    assert "is a file, not a folder" in line
    assert mentions(line, "dtd-r1.0.1.tar.gz")


def test_a_root_whose_folder_is_a_file(refused, far, dtd, tmp_path):
    """As root no permission stops a reader; a file in a folder's place stops everybody."""
    moved = dtd / "images" / "banded"
    moved.rename(tmp_path / "elsewhere")
    moved.write_bytes(b"")
    assert mentions(refused(far, "--root", f"dtd={dtd}"), "30", "60")


@pytest.mark.skipif(os.geteuid() == 0, reason="no permission stops the administrator")
def test_a_root_that_may_not_be_read(refused, far, dtd):
    (dtd / "images").chmod(0)
    try:
        assert refused(far, "--root", f"dtd={dtd}")
    finally:
        (dtd / "images").chmod(0o755)


def test_a_root_of_another_dataset(refused, far, tmp_path):
    write_images(tmp_path / "food", ["images/apple_pie/1005649.jpg", "images/sushi/1004763.jpg"])
    line = refused(far, "--root", f"dtd={tmp_path / 'food'}")
    assert "this is not dtd: looked for" in line
    assert mentions(line, "food101")


def test_a_loop_of_links(refused, far, dtd, tmp_path):
    (dtd / "images" / "woven").symlink_to("../images")
    (dtd / "images" / "banded").rename(tmp_path / "banded")
    (dtd / "images" / "banded").symlink_to("banded")
    assert "dtd" in refused(far, "--root", f"dtd={dtd}")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "loop" in refused(far, "--root", f"dtd={tmp_path / 'a'}")


def test_a_link_out_of_the_root(refused, far, dtd, tmp_path):
    (dtd / "images" / "banded").rename(tmp_path / "banded")
    (dtd / "images" / "banded").symlink_to(tmp_path / "banded")
    assert refused(far, "--root", f"dtd={dtd}", "--allow-missing")


def test_a_corrupt_image_is_named_with_what_is_wrong(refused, command, far, dtd, tmp_path):
    command("build", far, "--root", f"dtd={dtd}")
    taken = pq.read_table(tmp_path / "build" / "mine" / "images" / "test" / "far.parquet")
    image_id = taken.column("image_id")[0].as_py()
    path = dtd / "images" / f"{image_id}.jpg"
    path.write_bytes(path.read_bytes()[:300])
    line = refused(far, "--root", f"dtd={dtd}")
    assert mentions(line, dtd, image_id, "60")
    done = command("build", far, "--root", f"dtd={dtd}", "--allow-missing", "--json")
    assert done.code == 3
    assert [(m["kind"], m["image_id"]) for m in done.json["built"][0]["missing"]] == [
        ("unreadable", image_id)
    ]


def test_files_under_other_names_are_pointed_out(refused, far, dtd):
    """The most likely reason why nothing is found is said, not only that nothing is."""
    for path in (dtd / "images" / "banded").iterdir():
        path.rename(path.with_name("my_" + path.name))
    line = refused(far, "--root", f"dtd={dtd}")
    assert mentions(line, "30", "60")
    assert mentions(line, "120", "banded/my_banded_0002.jpg")


IMAGES = '{ test = { from = "test", per_class = 10 } }'
CIFAR = group("known", "id", "cifar100", '{ listed = ["apple", "bear"] }', IMAGES)


class Hostile:
    """What unpickling would run a command for."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def cifar_batch(count: int = 20) -> dict[str, object]:
    data = np.arange(count * 3072, dtype=np.uint32).astype(np.uint8).reshape(count, 3072)
    return {
        "data": data,
        "fine_labels": [0] * count,
        "filenames": [f"apple_s_{n:06}.png" for n in range(count)],
    }


@pytest.fixture
def cifar(tmp_path) -> Path:
    (tmp_path / "cifar").mkdir()
    return tmp_path / "cifar"


@pytest.mark.parametrize("more", [(), ("--allow-missing",), ("--workers", 2)])
def test_a_hostile_pickle_is_not_run(refused, cifar, tmp_path, more):
    canary = tmp_path / "canary"
    (cifar / "test").write_bytes(pickle.dumps({"data": Hostile(f"touch {canary}")}, 2))
    line = refused(write_recipe(tmp_path, CIFAR), "--root", f"cifar100={cifar}", *more)
    assert mentions(line, cifar / "test", "posix.system")
    assert not canary.exists()


def test_a_truncated_pickle_is_named_once_and_read_once(refused, cifar, tmp_path, monkeypatch):
    whole = pickle.dumps(cifar_batch(), 2)
    (cifar / "test").write_bytes(whole[: len(whole) // 2])
    opened: list[Path] = []
    load = small_images.load_pickle  # type: ignore[attr-defined]
    monkeypatch.setattr(small_images, "load_pickle", lambda path: opened.append(path) or load(path))
    line = refused(write_recipe(tmp_path, CIFAR), "--root", f"cifar100={cifar}")
    assert mentions(line, cifar / "test")
    assert opened == [cifar / "test"]  # not again for each of the images in it


def test_a_pickle_of_another_dataset(refused, cifar, tmp_path):
    (cifar / "test").write_bytes(pickle.dumps({"weights": [1]}, 2))
    assert mentions(refused(write_recipe(tmp_path, CIFAR), "--root", f"cifar100={cifar}"), "weights")


def test_positions_of_a_copy_that_is_not_the_publishers_name_no_images(refused, command, tmp_path):
    """SVHN's images have no names: another file order would give every id another picture."""
    root = tmp_path / "svhn"
    root.mkdir()
    (root / "test_32x32.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    images = '{ test = { from = "test", total = 10 } }'
    recipe = write_recipe(tmp_path, KNOWN, group("far", "far", "svhn", '{ listed = ["1", "2"] }', images))
    line = refused(recipe, "--root", f"svhn={root}", "--allow-missing")
    assert mentions(line, root, "svhn")
    done = command("build", recipe, "--root", f"svhn={root}", "--local", "--json")
    assert done.code == 0
    assert set(done.json["built"][0]["unread"]) == {"svhn"}
    table = pq.read_table(tmp_path / "build" / "mine" / "images" / "test" / "far.parquet")
    assert (table.num_rows, table.column("digest").null_count) == (10, 10)


IMAGENET = group(
    "known",
    "id",
    "imagenet1k",
    f"{{ listed = {sorted({c for _, c, _ in IMAGENET_VAL})} }}",
    '{ test = { from = "val", per_class = 1 } }',
)


def hostile_tar(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd" if kind != tarfile.REGTYPE else ""
        data = jpeg(1) if kind == tarfile.REGTYPE else b""
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVES: dict[str, tuple[bytes, object]] = {
    "outside": (hostile_tar("../../ILSVRC2012_val_00000001.JPEG"), "../../ILSVRC2012_val_00000001.JPEG"),
    "absolute": (hostile_tar("/ILSVRC2012_val_00000001.JPEG"), "/ILSVRC2012_val_00000001.JPEG"),
    "link": (hostile_tar("ILSVRC2012_val_00000001.JPEG", tarfile.SYMTYPE), ()),
    "truncated": (val_tar(IMAGENET_VAL)[:1000], "truncated"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_that_leaves_its_folder_or_is_cut_off(refused, tmp_path, kind):
    root = tmp_path / "imagenet"
    root.mkdir()
    data, said = ARCHIVES[kind]
    (root / "ILSVRC2012_img_val.tar").write_bytes(data)
    line = refused(write_recipe(tmp_path, IMAGENET), "--root", f"imagenet1k={root}", "--allow-missing")
    assert mentions(line, said)
    assert str(root / "ILSVRC2012_img_val.tar") in line
    assert visible(tmp_path) == ["imagenet", "mine.toml", *(["out"] if (tmp_path / "out").exists() else [])]


def test_an_archive_without_its_images(refused, tmp_path):
    root = tmp_path / "imagenet"
    root.mkdir()
    (root / "ILSVRC2012_img_val.tar").write_bytes(tar_bytes([("ILSVRC2012_val_00050000.JPEG", jpeg(1))]))
    line = refused(write_recipe(tmp_path, IMAGENET), "--root", f"imagenet1k={root}")
    assert mentions(line, "3", "imagenet1k")
