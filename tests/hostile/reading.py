"""Readers that no quick command stands for, as functions that read the current folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from wordnet_splits.base.names import printable
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.cli.main import app as cli
from wordnet_splits.datasets.catalog import inventory, read_catalog
from wordnet_splits.datasets.catalog.inventory import inventory_splits, list_names, load_inventory, load_list
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.roots import read_roots_file
from wordnet_splits.wordnet.taxonomy import Taxonomy


def source(name: str) -> Callable[[], int]:
    """Scan a root, and read and decode its first pictures."""

    def read() -> int:
        opened = open_source(name, Path())
        ids = [i for batch in islice(opened.scan(), 40) for i in batch.column("image_id").to_pylist()]
        print(len(ids), *map(printable, sorted(opened.unexpected)[:5]))
        for image_id in ids[:6]:
            for raw in opened.read([image_id]):
                print(opened.decode(raw, image_id).size, opened.digest(raw).hex()[:8])
        return 0

    return read


def pull() -> int:
    """Pull what a Hub on this machine holds: the files of the folder ``repository``."""
    from tests.hub_server import Hub, Repo, serving

    folder = Path("repository")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    repository = Repo()
    repository.tags["v1"] = repository.commit({name: path.read_bytes() for name, path in files.items()})
    with serving(Hub({"org/set": repository})) as hub:
        os.environ.update(HF_ENDPOINT=hub.address, HF_HUB_DISABLE_XET="1", XDG_CACHE_HOME="cache")
        return run(cli, ["hub", "pull", "org/set@v1", "--out", "pulled"], "wordnet-splits")


def roots() -> int:
    """Read ``roots.toml``."""
    return 0 * len(read_roots_file(Path("roots.toml")))


def catalog() -> int:
    """Read a catalog."""
    return 0 * len(list(read_catalog(Path("svhn.tsv"))))


def lists() -> int:
    """Read published lists and inventories, as if these were the shipped ones."""
    inventory.DATA = Path()
    load_list.cache_clear()
    list_names.cache_clear()
    print(*(len(load_list(name)) for name in list_names()))
    print(*(len(load_inventory("svhn", split) or ()) for split in inventory_splits("svhn")))
    return 0


def mapping() -> int:
    """Read both forms of a class map."""
    from loaders.harness.models.class_map import Label, LabelSpace, class_map

    space = LabelSpace(tuple(Label(str(n), str(n)) for n in range(6)), {})
    print(*(class_map(space, 6, mapping=Path(name)).columns for name in ("map.json", "classes.txt")))
    return 0


def wordnet() -> int:
    """Read WordNet's own files."""
    return 0 * len(list(Taxonomy.from_wndb(Path())))


def weights() -> int:
    """Read the tensors in files of weights."""
    from loaders.harness.models.weights import read_state

    for name in ("x.safetensors", "x.pt"):
        print(*(f"{printable(key)} {tuple(value.shape)}" for key, value in read_state(Path(name)).items()))
    return 0
