"""Kinds of files that we read: how a sound one is made, and what reads it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from tests.hostile import reading
from tests.hostile.exchanged import EXCHANGED
from tests.hostile.kind import Kind
from tests.hostile.own import ENTRIES, OWN
from tests.hostile.running import finish
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.datasets.catalog.inventory import DATA
from wordnet_splits.datasets.catalog.table import CATALOGS

IMAGES = {"a.jpg": "JPEG", "b.png": "PNG", "c.gif": "GIF", "d.bmp": "BMP", "e.webp": "WEBP", "f.tif": "TIFF"}


def _recipe(folder: Path) -> None:
    shutil.copy(CATALOGS.parent / "recipes" / "digits.toml", folder / "digits.toml")


def _variant(folder: Path) -> None:
    _recipe(folder)
    (folder / "folder.toml").mkdir()
    lines = ('extends = "digits.toml"', "schema = 1", 'name = "variant"', 'drop = ["uniform"]', "")
    (folder / "variant.toml").write_text("\n".join(lines))


def _lists(folder: Path) -> None:
    for name in ("lists/openood/cifar10_test_tin.parquet", "inventories/svhn/test.parquet"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(DATA / name, folder / name)


def _class_map(folder: Path) -> None:
    (folder / "map.json").write_text('{"5": 0, "4": 1, "3": 2, "2": 3, "1": 4, "0": 5}')
    (folder / "classes.txt").write_text("5\n4\n3\n2\n1\n0\n")


def _manifest(folder: Path) -> None:
    shutil.copytree(find_manifest("digits"), folder / "made" / "digits")


def _store(folder: Path) -> None:
    from wordnet_splits.benchmark.images.pack import pack

    pack(load_manifest("digits"), folder / "store", groups=["digits-6-9", "gaussian"])


def _pictures(folder: Path) -> None:
    rng = np.random.default_rng(0)
    (folder / "in").mkdir()
    for name, image_format in IMAGES.items():
        pixels = rng.integers(0, 256, (90, 70, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "in" / name, image_format)


@cache  # one example for all kinds of one format
def _resized(file_format: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _pictures(folder)
        words = ["fix-resize", "build", "folder", "--root", "in", "--out", "out", "--format", file_format]
        finish(folder, *words, "--backend", "pillow")

    return make


def _cifar(folder: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"apple_s_{n:06d}.png" for n in range(6)]
    batch = {"data": rng.integers(0, 256, (6, 3072), np.uint8), "fine_labels": [0] * 6, "filenames": names}
    (folder / "train").write_bytes(pickle.dumps(batch, protocol=2))
    (folder / "test").write_bytes(pickle.dumps({**batch, "filenames": names[::-1]}, protocol=4))


def _tar(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import IMAGENET_TRAIN, IMAGENET_VAL, train_tar, val_tar

    (folder / "ILSVRC2012_img_train.tar").write_bytes(train_tar(IMAGENET_TRAIN))
    (folder / "ILSVRC2012_img_val.tar").write_bytes(val_tar(IMAGENET_VAL))


def _hub(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import IMAGENET_TRAIN, hub_shards, jpeg

    rows: list[tuple[str | None, bytes]] = [
        (f"{i}.JPEG", jpeg(n)) for n, (i, _, _) in enumerate(sorted(IMAGENET_TRAIN))
    ]
    hub_shards(folder, "train", rows)


def _nameless(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import hub_shards

    rng = np.random.default_rng(0)
    rows: list[tuple[str | None, bytes]] = []
    for number in range(6):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(path)
        rows.append((None, path.read_bytes()))
        path.unlink()
    hub_shards(folder / "cropped_digits", "train", rows)


def _lmdb(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import jpeg, write_lmdb

    write_lmdb(folder / "bedroom_val_lmdb", {f"{n:040x}": jpeg(n) for n in range(40)})


def _mat(folder: Path) -> None:
    from scipy.io import savemat

    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.integers(0, 256, (32, 32, 3, 6), np.uint8),
        "y": np.arange(1, 7, dtype=np.uint8)[:, None],
    }
    savemat(folder / "train_32x32.mat", arrays, do_compression=True)
    savemat(folder / "test_32x32.mat", arrays)


def _idx(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import write_idx

    write_idx(folder)
    write_idx(folder, "train", ending=".gz")


def _zips(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import ANGELIC, OTHER, as_zip

    as_zip(folder, "images_background", OTHER)
    as_zip(folder, "images_evaluation", ANGELIC)


def _textures(folder: Path) -> None:
    from tests.wordnet_splits.datasets.sources.trees import in_class_folders, some, write_images

    write_images(folder, in_class_folders(some("dtd", "all"), "images", extension="jpg"))


def _roots(folder: Path) -> None:
    lines = ('imagenet1k = "/data/imagenet"', 'dtd = "~/datasets/dtd"', 'lsun = "lsun"', "")
    (folder / "roots.toml").write_text("\n".join(lines))


def _catalog(folder: Path) -> None:
    shutil.copy(CATALOGS / "svhn.tsv", folder / "svhn.tsv")


def _class_lists(folder: Path) -> None:
    (folder / "mine.txt").write_text("# mine\nalgebra\nn02084071\nspoon.n.01\n")
    (folder / "known.tsv").write_text("wnid\tname\nn01440764\ttench\nn02691156\tairplane\n")
    (folder / "mine.json").write_text('{"0": ["n02084071", "dog"], "1": ["n04284002", "spoon"]}')


def _wndb(folder: Path) -> None:
    from tests.wordnet_splits.wordnet.taxonomy.small_wndb import write_small_wndb

    write_small_wndb(folder)


def _weights(folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    state = {"head.weight": torch.zeros(6, 4), "head.bias": torch.zeros(6)}
    save_file(state, folder / "x.safetensors")
    torch.save({"state_dict": state}, folder / "x.pt")


_TRAIN = ("--epochs", "1", "--threads", "1", "--device", "cpu", "--seeds", "0")


def _evaluated(folder: Path) -> None:
    words = ["unknown-eval", "train", "--benchmark", "digits", "--recipe", "digits-demo", *_TRAIN]
    finish(folder, *words, "--out", "models")
    finish(folder, *EVALUATE, "--out", "results")


def _swept(folder: Path) -> None:
    from loaders.harness.evaluation.run_evaluation import evaluate_runs
    from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run

    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "knn,energy", sweep=True).write(folder / "results")


EVALUATE = (
    *(
        "unknown-eval",
        "run",
        "--benchmark",
        "digits",
        "--model",
        "trained:models/digits",
        "--detectors",
        "msp",
    ),
    *("--device", "cpu", "--store", "store"),
)

_FOLDER = ("fix-resize", "build", "folder", "--root", "in", "--out", "out", "--backend", "pillow")
_CHECK = ("wordnet-splits", "pack", "digits", "--check", "--out", "store")
_BUILD = ("wordnet-splits", "build")
_AUDIT = ("wordnet-splits", "audit", "list")
_RESULTS = ("unknown-eval", "recompute", "--check", "results")

LIGHT = (
    Kind("recipe", _recipe, (*_BUILD, "digits.toml", "--out", "out"), ["*.toml"]),
    Kind("variant of a recipe", _variant, (*_BUILD, "variant.toml", "--out", "out"), ["*.toml"]),
    Kind("manifest", _manifest, ("wordnet-splits", "verify", "made/digits"), ["made/**/*"], True, 40),
    Kind("packed store", _store, _CHECK, ["store/**/*"], True, 30),
    Kind("pictures", _pictures, _FOLDER, ["in/*"], share=40),
    Kind("output of fix-resize (png)", _resized("png"), ("fix-resize", "verify", "out"), ["out/**/*"], True),
    Kind("output of fix-resize", _resized("parquet"), ("fix-resize", "verify", "out"), ["out/**/*"], True),
    Kind("unfinished fix-resize build", _resized("png"), _FOLDER, ["out/.*/*"]),
    Kind("CIFAR pickles", _cifar, reading.source("cifar100"), ["train", "test"], share=40),
    Kind("tar archives", _tar, reading.source("imagenet1k"), ["*.tar"], share=40),
    Kind("Hub Parquet", _hub, reading.source("imagenet1k"), ["*.parquet"]),
    Kind("Hub Parquet without names", _nameless, reading.source("svhn"), ["cropped_digits/*"]),
    Kind("LMDB", _lmdb, reading.source("lsun"), ["*/data.mdb"]),
    Kind("MATLAB files", _mat, reading.source("svhn"), ["*.mat"]),
    Kind("idx files", _idx, reading.source("fashion-mnist"), ["*-ubyte*"]),
    Kind("zip archives", _zips, reading.source("omniglot"), ["*.zip"]),
    Kind("class folders", _textures, reading.source("dtd"), ["images/*/*"]),
    Kind("published lists, inventories", _lists, reading.lists, ["**/*"]),
    Kind("roots.toml", _roots, reading.roots, ["roots.toml"]),
    Kind("catalog", _catalog, reading.catalog, ["svhn.tsv"]),
    Kind("class lists", _class_lists, (*_AUDIT, "mine.txt", "--against", "known.tsv"), ["mine.txt", "*.tsv"]),
    Kind("class lists (JSON)", _class_lists, (*_AUDIT, "mine.json", "--against", "known.tsv"), ["mine.json"]),
    Kind("WordNet files", _wndb, reading.wordnet, ["*.noun", "noun.exc"]),
)
"""The kinds that are read without torch."""

HEAVY = (
    Kind("class maps", _class_map, reading.mapping, ["map.json", "classes.txt"]),
    Kind("weights", _weights, reading.weights, ["x.*"]),
    Kind("trained model", _evaluated, (*EVALUATE, "--out", "out"), ["models/**/*"], share=8),
    Kind("store of activations", _evaluated, (*EVALUATE, "--out", "again"), ["store/**/*"], share=8),
    Kind("results", _evaluated, _RESULTS, ["results/**/*.parquet", "results/**/*.json"], True),
    Kind("results of a sweep", _swept, _RESULTS, ["results/*.parquet", "results/*.json"], True),
)

KINDS = (*LIGHT, *EXCHANGED, *OWN, *((*HEAVY, *ENTRIES) if find_spec("torch") else ()))
