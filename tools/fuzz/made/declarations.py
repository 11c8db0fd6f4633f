"""Declarations, annotations and names that no alteration of sound ones comes upon."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools.fuzz.made.making import Made, Make, in_bytes, in_text

__all__ = ["COCO", "CSV", "DECLARED", "NAMES", "PARQUET", "Made"]


def _line(old: str, new: str) -> Make:
    return in_text(lambda text: text.replace(old, new))


DECLARED: Made = {
    "a layout that is a path": ("pics/dataset.toml", _line('"folders"', '"../../etc"')),
    "a layout of nobody": ("pics/dataset.toml", _line('"folders"', '"evil"')),
    "a catalog elsewhere": ("pics/dataset.toml", _line('"mypics.tsv"', '"/dev/zero"')),
    "another dataset's name": ("pics/dataset.toml", _line('"mypics"', '"imagenet1k"')),
    "a class of 100,000 letters": ("pics/mypics.tsv", _line("zebra", "z" * 100_000)),
    "one class twice": ("pics/mypics.tsv", _line("zebra", "teapot")),
    "a count of 5,000 digits": ("pics/mypics.tsv", _line("\t2\t", "\t" + "9" * 5000 + "\t")),
    "a split with a tab": ("pics/mypics.tsv", _line("count_test", "count_te\\tst")),
}

CSV: Made = {
    "semicolons": ("pics/labels.csv", in_text(lambda text: text.replace(",", ";"))),
    "a label of 131,073 letters": ("pics/labels.csv", _line("zebra", "z" * 131_073)),
    "a label of controls": ("pics/labels.csv", _line("zebra", "\x1b[2J\x07")),
    "a path outside": ("pics/labels.csv", _line("train/zebra/0.png", "../../../etc/passwd")),
    "a row twice": ("pics/labels.csv", in_text(lambda text: text + text.splitlines()[-1] + "\n")),
    "two columns of one name": ("pics/labels.csv", in_text(lambda text: text.replace("split", "label", 1))),
}


def _table(change: Callable[[pa.Table], pa.Table]) -> Make:
    def make(path: Any, rng: Any) -> None:
        pq.write_table(change(pq.read_table(path)), path)

    return make


PARQUET: Made = {
    "pictures that are integers": (
        "pics/rows.parquet",
        _table(lambda table: table.set_column(0, "file", pa.array(range(len(table))))),
    ),
    "pictures that are lists": (
        "pics/rows.parquet",
        _table(lambda table: table.set_column(0, "file", pa.array([[1, 2]] * len(table)))),
    ),
    "two columns called label": (
        "pics/rows.parquet",
        _table(lambda table: table.append_column("label", table["label"])),
    ),
    "labels that are lists": (
        "pics/rows.parquet",
        _table(lambda table: table.set_column(1, "label", pa.array([["a"]] * len(table)))),
    ),
    "pictures without bytes": (
        "pics/rows.parquet",
        _table(lambda table: table.set_column(0, "file", pa.nulls(len(table), table.schema.types[0]))),
    ),
}


def _json(change: Callable[[dict[str, Any]], object]) -> Make:
    def changed(text: str) -> str:
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return in_text(changed)


_TEST = "pics/annotations/instances_test2017.json"
COCO: Made = {
    "an area of 400 digits": (_TEST, _line("10.5", "9" * 400)),
    "a box of 400 digits": (
        _TEST,
        _json(lambda d: d["annotations"][0].update(area=None, bbox=[0, 0, 10**400, 1])),
    ),
    "a second document": (_TEST, in_text(lambda text: text + text)),
    "a name of half a pair": (_TEST, _json(lambda d: d["categories"][0].update(name="\ud800"))),
    "a name of 100,000 letters": (_TEST, _json(lambda d: d["categories"][0].update(name="z" * 100_000))),
    "two categories of one name": (_TEST, _json(lambda d: d["categories"][0].update(name="zebra"))),
    "two images of one id": (_TEST, _json(lambda d: d["images"].append(d["images"][0]))),
    "an annotation of no image": (_TEST, _json(lambda d: d["annotations"][0].update(image_id=10**30))),
    "a file outside": (_TEST, _json(lambda d: d["images"][0].update(file_name="../../../etc/passwd"))),
    "categories that are numbers": (_TEST, _json(lambda d: d.update(categories=[1, 2]))),
    "nested 500 deep": (_TEST, in_bytes(lambda: b"[" * 500 + b"]" * 500)),
}

NAMES: Made = {
    "a name of 800 letters": ("names.txt", in_bytes(lambda: b"a" * 800)),
    "a name of 20,000 hyphens": ("names.txt", in_bytes(lambda: b"a-" * 20_000)),
    "800 letters that are words": ("names.txt", in_bytes(lambda: b"catdog" * 133)),
    "a name of 2 million letters": ("names.txt", in_bytes(lambda: b"A" * 2_000_000)),
    "a name of controls": ("names.txt", in_bytes(lambda: "\x1b[2J\x07\u2028x\n".encode() * 6)),
    "accents without a letter": ("names.txt", in_bytes(lambda: "\u0301\u0301\n\u0301".encode())),
    "names in other scripts": (
        "names.txt",
        in_bytes(lambda: "L\u00f6we\n\u30e9\u30a4\u30aa\u30f3\n".encode()),
    ),
    "nothing but spaces": ("names.txt", in_bytes(lambda: b"   \n\t\n \n")),
    "one name twice": ("names.txt", in_bytes(lambda: b"crane\ncrane\n")),
}
