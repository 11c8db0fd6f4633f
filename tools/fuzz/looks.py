"""Readers that no quick command stands for, as a small program: ``look KIND PATH``."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from loaders.harness.models.class_map import Label, LabelSpace, class_map
from wordnet_splits.base.errors import unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.cli.main import app as cli
from wordnet_splits.datasets.catalog import inventory, read_catalog
from wordnet_splits.datasets.catalog.inventory import inventory_splits, list_names, load_inventory, load_list
from wordnet_splits.datasets.sources import open_source, source_names
from wordnet_splits.datasets.sources.roots import read_roots_file
from wordnet_splits.wordnet.taxonomy import Taxonomy

app = typer.Typer(add_completion=False)


@app.command()
def look(kind: Annotated[str, typer.Argument()], path: Annotated[Path, typer.Argument()]) -> int:
    """Read what is at PATH, all of it, and say how much that was."""
    if kind in source_names():
        return _source(kind, path)
    if kind == "hub":
        return _pull(path)
    if kind == "roots":
        print(len(read_roots_file(path)))
    elif kind == "catalog":
        print(len(list(read_catalog(path))))
    elif kind == "lists":
        inventory.DATA = path  # as if these were the shipped ones
        print(*(len(load_list(name)) for name in list_names()))
        print(*(len(load_inventory("svhn", split) or ()) for split in inventory_splits("svhn")))
    elif kind == "mapping":
        space = LabelSpace(tuple(Label(str(n), str(n)) for n in range(6)), {})
        print(*(class_map(space, 6, mapping=path / name).columns for name in ("map.json", "classes.txt")))
    elif kind == "wndb":
        print(len(list(Taxonomy.from_wndb(path))))
    else:
        raise unknown("kind", kind, ["hub", "roots", "catalog", "lists", "mapping", "wndb", *source_names()])
    return 0


def _pull(folder: Path) -> int:
    """Pull what a Hub on this machine holds: the files of a folder."""
    from tests.hub_server import Hub, Repo, serving

    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    repository = Repo()
    repository.tags["v1"] = repository.commit({name: path.read_bytes() for name, path in files.items()})
    with serving(Hub({"org/set": repository})) as hub:
        os.environ.update(HF_ENDPOINT=hub.address, HF_HUB_DISABLE_XET="1", XDG_CACHE_HOME="cache")
        return run(cli, ["hub", "pull", "org/set@v1", "--out", "pulled"], "wordnet-splits")


def _source(name: str, root: Path) -> int:
    """Scan a root, and read and decode its first pictures."""
    source = open_source(name, root)
    ids = [i for batch in islice(source.scan(), 40) for i in batch.column("image_id").to_pylist()]
    print(len(ids), *map(printable, sorted(source.unexpected)[:5]))
    for image_id in ids[:6]:
        for raw in source.read([image_id]):
            print(source.decode(raw, image_id).size, source.digest(raw).hex()[:8])
    return 0
