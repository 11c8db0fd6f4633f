"""The lists that OpenOOD and openset-imagenet published, as the oracle: read, and written line for line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import raises
from tools.facts.lists import OPENOOD, OPENSET
from tools.facts.published import Published
from wordnet_splits.base.errors import DataError
from wordnet_splits.datasets.catalog.inventory import LIST_SCHEMA, find_list, load_inventory, load_list
from wordnet_splits.exchange import export_benchmark, import_benchmark
from wordnet_splits.exchange.paths import find_image, official_path

KNOWN = [(benchmark, name) for benchmark, names in OPENOOD.items() for name in names]


@pytest.mark.sampled("oracle", one_in=3)
@pytest.mark.parametrize(("benchmark", "name"), KNOWN)
def test_openood_paths_are_read_and_written_as_published(benchmark, name, facts):
    published = Published(facts / f"openood/benchmark_imglist/{benchmark}/{name}.txt.gz")
    table = load_list(f"openood/{benchmark}_{name}")
    rows = zip(*(table[c].to_pylist() for c in LIST_SCHEMA.names), strict=True)
    written = {f"{official_path('openood', s, i, c)} {label}" for s, i, c, label in rows}
    assert written == set(published.lines())
    sample = sorted(published.lines())[::5]
    read = {find_image("openood", line.split(" ")[0])[:2] for line in sample}
    assert len(read) == len(sample)
    assert read <= set(zip(table["source"].to_pylist(), table["image_id"].to_pylist(), strict=True))


def test_an_openood_list_becomes_a_list_of_a_recipe(facts, tmp_path):
    for name in ("test_imagenet200", "val_imagenet200", "test_textures"):
        published = Published(facts / f"openood/benchmark_imglist/imagenet200/{name}.txt.gz")
        (tmp_path / f"{name}.txt").write_bytes(published.body)
    done = import_benchmark("openood", tmp_path, tmp_path / "out", name="mine")
    names = ("test_imagenet200", "val_imagenet200", "test_textures")
    assert done.lists == [f"mine/{name}" for name in names]
    for mine, shipped in zip(done.lists, names, strict=True):
        table = find_list(mine, tmp_path / "out")
        assert table.replace_schema_metadata().equals(
            load_list(f"openood/imagenet200_{shipped}").replace_schema_metadata()
        )
    assert done.manifest is not None
    found = [(g.group, g.role, g.split, g.actual) for g in done.manifest.groups]
    textures = len(load_list("openood/imagenet200_test_textures")["class_id"].unique())
    assert found == [
        ("imagenet200", "id", "classes", 200),
        ("imagenet200", "id", "val", 1000),
        ("imagenet200", "id", "test", 9000),
        ("textures", "far", "classes", textures),
        ("textures", "far", "test", 5160),
    ]
    labels = dict(
        zip(
            *(done.manifest.images("test", "imagenet200")[c].to_pylist() for c in ("image_id", "label")),
            strict=True,
        )
    )
    lines = (line.split(" ") for line in (tmp_path / "test_imagenet200.txt").read_text().splitlines())
    assert labels == {Path(path).stem: int(label) for path, label in lines}


@pytest.mark.sampled("oracle", one_in=3)
@pytest.mark.parametrize("benchmark", ["osc-p1", "osc-p2", "osc-p3"])
def test_protocols_are_written_line_for_line(facts, export_once, benchmark):
    _, folder = export_once(benchmark, "openset-imagenet")
    written = {f.stem: f.read_text().splitlines() for f in folder.glob("*.csv")}
    for name in OPENSET:
        protocol, _, split = name.partition("_")
        if benchmark.endswith(protocol) and split in written:
            published = Published(facts / f"openset_imagenet/{name}.csv.gz")
            assert sorted(written[split]) == sorted(published.lines())
    assert {"val", "test"} <= written.keys()


def test_protocols_are_read(facts, tmp_path):
    for split in ("val", "test"):
        published = Published(facts / f"openset_imagenet/p1_{split}.csv.gz")
        (tmp_path / f"p1_{split}.csv").write_bytes(published.body)
    done = import_benchmark("openset-imagenet", tmp_path, tmp_path / "out", name="p1")
    assert done.manifest is not None
    counts = {(g.group, g.role, g.split): g.actual for g in done.manifest.groups}
    assert counts == {  # the paper's table
        ("known", "id", "classes"): 116,
        ("known", "id", "val"): 29055,
        ("known", "id", "test"): 5800,
        ("negative", "external", "classes"): 67,
        ("negative", "external", "val"): 17420,
        ("negative", "external", "test"): 3350,
        ("unknown", "far", "classes"): 166,
        ("unknown", "far", "test"): 8300,
    }


def by_class(path: str, wnids: dict[str, str]) -> str:
    """The same path as the publisher's archives have it: a folder of the class above the file."""
    above, _, name = path.rpartition("/")
    return f"{above}/{wnids[Path(name).stem]}/{name}"


@pytest.mark.parametrize("in_class_folders", [False, True])
def test_corrupted_images_have_the_class_of_the_image_that_was_corrupted(in_class_folders, facts, tmp_path):
    """No list of OpenOOD names the class: ImageNet's inventory has it, and a class folder must agree."""
    published = Published(facts / "openood/benchmark_imglist/imagenet200/test_imagenet200_c.txt.gz")
    clean = Published(facts / "openood/benchmark_imglist/imagenet200/test_imagenet200.txt.gz")
    table = load_inventory("imagenet1k", "val")
    wnids = dict(zip(table["image_id"].to_pylist(), table["class_id"].to_pylist(), strict=True))
    pairs = [line.split(" ") for line in published.lines()]
    if in_class_folders:
        pairs = [[by_class(path, wnids), label] for path, label in pairs]
    (tmp_path / "test_c.txt").write_text("".join(f"{path} {label}\n" for path, label in pairs))
    (tmp_path / "test_clean.txt").write_bytes(clean.body)
    done = import_benchmark("openood", tmp_path, tmp_path / "out", name="mine", roles={"c": "csid"})
    shipped = load_list("openood/imagenet200_test_imagenet200_c").replace_schema_metadata()
    assert find_list("mine/test_c", tmp_path / "out").replace_schema_metadata().equals(shipped)
    assert done.manifest is not None
    held = {(g.group, g.role): g.actual for g in done.manifest.groups if g.split == "test"}
    assert held == {("clean", "id"): 9000, ("c", "csid"): len(pairs)}
    labels = dict(
        zip(*(done.manifest.images("test", "c")[c].to_pylist() for c in ("class_id", "label")), strict=True)
    )
    assert labels == {wnids[Path(path).stem]: int(label) for path, label in pairs}
    export_benchmark(str(tmp_path / "out" / "mine"), "openood", tmp_path / "again")
    written = (tmp_path / "again" / "test_c.txt").read_text().splitlines()
    assert sorted(written) == sorted(published.lines())


def test_a_corrupted_image_in_the_folder_of_another_class_is_no_image(tmp_path):
    name = "ILSVRC2012_val_00000293.JPEG"  # a tench
    for path in (
        f"fog/5/n01443537/{name}",
        f"haze/5/{name}",
        f"fog/6/{name}",
        "fog/5/ILSVRC2012_val_00050001.JPEG",
    ):
        (tmp_path / "test_c.txt").write_text(f"imagenet_c/{path} 0\n")
        with raises(DataError, where="test_c.txt"):
            import_benchmark("openood", tmp_path / "test_c.txt", tmp_path / "out")
