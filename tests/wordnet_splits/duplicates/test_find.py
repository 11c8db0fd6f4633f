"""Near-duplicates between sets: shards, resumption, verdicts, the page, and refusals in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.raising import mentions
from wordnet_splits.base.errors import DataError, OutputError, SourceError, SplitsError, UnknownNameError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.catalog.image_pairs import duplicate_images, read_pairs, write_pairs
from wordnet_splits.duplicates import perceptual_hash as hashing
from wordnet_splits.duplicates.find import find_duplicates
from wordnet_splits.duplicates.perceptual_hash import perceptual_hash

from .test_perceptual_hash import picture, recompressed

COPIES = {"copy": 0, "small": 3, "jpeg": 7}


@pytest.fixture
def folders(tmp_path, no_roots_of_this_machine) -> tuple[str, str]:
    """Twelve pictures, and ten others with three changed copies."""
    a, b = tmp_path / "a", tmp_path / "b"
    for n in range(12):
        save(picture(n), a / f"class-{n % 2}" / f"{n}.png")
    for n in range(10):
        save(picture(100 + n), b / f"{n}.png")
    save(picture(0), b / "copy.png")
    save(picture(3).resize((70, 60)), b / "small.png")
    save(recompressed(picture(7), 40), b / "jpeg.png")
    return str(a), str(b)


def save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def pairs_of(rows) -> dict[str, str]:
    return {row["image_id_b"]: row["image_id_a"] for row in rows}


def test_changed_copies_are_found(folders, tmp_path):
    report = find_duplicates(*folders, tmp_path / "out")
    rows = read_pairs(report.table)
    assert pairs_of(rows) == {name: f"class-{n % 2}/{n}" for name, n in COPIES.items()}
    for row in rows:
        hashes = [
            int.from_bytes(perceptual_hash(Image.open(Path(folder) / f"{row[f'image_id_{side}']}.png")))
            for side, folder in zip("ab", folders, strict=True)
        ]
        assert int(row["distance"]) == (hashes[0] ^ hashes[1]).bit_count() <= 8
    assert (report.images_a, report.images_b, report.pairs, report.problems) == (12, 13, 3, [])
    assert rows[0]["source_a"] == "a"
    assert rows[0]["class_id_a"] == "class-0"


def test_shards_and_workers_change_nothing(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(hashing, "IMAGES_PER_JOB", 3)
    whole = find_duplicates(*folders, tmp_path / "whole").table.read_bytes()
    for number in (3, 1, 2):
        workers = 2 if number == 3 else 1
        report = find_duplicates(*folders, tmp_path / "parts", shard=(number, 3), workers=workers)
        assert (report.table is None) == (number != 2)
    assert report.table.read_bytes() == whole
    assert report.shards_missing == ()


def test_an_interrupted_run_continues(folders, tmp_path, monkeypatch):
    whole = find_duplicates(*folders, tmp_path / "whole").table.read_bytes()
    monkeypatch.setattr(hashing, "IMAGES_PER_JOB", 2)
    hash_chunk, chunks = hashing.hash_chunk, []

    def killed_at_third(job):
        chunks.append(job)
        if len(chunks) == 3:
            raise KeyboardInterrupt
        return hash_chunk(job)

    monkeypatch.setattr(hashing, "hash_chunk", killed_at_third)
    with pytest.raises(KeyboardInterrupt):
        find_duplicates(*folders, tmp_path / "out")
    with (tmp_path / "out" / "a-1-of-1.hashes").open("ab") as file:
        file.write(b"torn")  # half a record of a chunk in flight
    report = find_duplicates(*folders, tmp_path / "out")
    assert report.table.read_bytes() == whole
    assert chunks[3][2] == chunks[2][2], "it continues with the chunk in flight"
    assert sum(len(job[2]) for job in chunks[3:]) == 12 - 4 + 13


def test_a_changed_picture_is_hashed_again(folders, tmp_path):
    find_duplicates(*folders, tmp_path / "out")
    save(picture(5, size=80), Path(folders[1]) / "9.png")
    assert "9" in pairs_of(read_pairs(find_duplicates(*folders, tmp_path / "out").table))


def test_an_unreadable_picture_is_a_problem_until_it_is_repaired(folders, tmp_path):
    path = Path(folders[1]) / "copy.png"
    content = path.read_bytes()
    path.write_bytes(content[:200])
    for _ in range(2):
        report = find_duplicates(*folders, tmp_path / "out")
        assert [(p.kind, p.image_id) for p in report.problems] == [("unreadable", "copy")]
        assert report.pairs == 2
    path.write_bytes(content)
    assert find_duplicates(*folders, tmp_path / "out").pairs == 3


def test_pictures_of_one_name_in_two_folders_of_one_name_are_compared(tmp_path, no_roots_of_this_machine):
    for folder in ("train/images", "test/images"):
        save(picture(1), tmp_path / folder / "1.png")
        save(picture(2), tmp_path / folder / "2.png")
    a, b = str(tmp_path / "train/images"), str(tmp_path / "test/images")
    rows = read_pairs(find_duplicates(a, b, tmp_path / "out").table)
    assert pairs_of(rows) == {"1": "1", "2": "2"}
    assert {(row["source_a"], row["source_b"]) for row in rows} == {(a, b)}
    assert find_duplicates(a, f"{a}/../images", tmp_path / "same").pairs == 0


def test_pictures_whose_names_differ_only_in_the_ending_are_compared(tmp_path, no_roots_of_this_machine):
    for name in ("1.png", "1.bmp", "2.png"):
        save(picture(int(name[0])), tmp_path / "a" / name)
    folder = str(tmp_path / "a")
    (row,) = read_pairs(find_duplicates(folder, folder, tmp_path / "out").table)
    assert (row["image_id_a"], row["image_id_b"]) == ("1.bmp", "1.png")


def test_a_comparison_in_the_folder_of_its_images_is_refused(folders):
    for out in (folders[0], f"{folders[1]}/out"):
        with pytest.raises(OutputError):
            find_duplicates(*folders, out)


def test_two_verdicts_on_one_pair_are_refused(folders, tmp_path):
    out = tmp_path / "out"
    row = read_pairs(find_duplicates(*folders, out).table)[0] | {"reviewer": "AB"}
    write_pairs(out / "verdicts.tsv", [row | {"verdict": "same"}, row | {"verdict": "different"}])
    with pytest.raises(DataError):
        find_duplicates(*folders, out)


def test_a_set_with_itself_gives_each_pair_once(tmp_path, no_roots_of_this_machine):
    for name in ("x", "y", "z"):
        save(picture(1), tmp_path / "set" / f"{name}.png")
    folder = str(tmp_path / "set")
    for shards in (1, 2):
        for number in range(1, shards + 1):
            report = find_duplicates(folder, folder, tmp_path / f"out{shards}", shard=(number, shards))
        pairs = {(row["image_id_a"], row["image_id_b"]) for row in read_pairs(report.table)}
        assert pairs == {("x", "y"), ("x", "z"), ("y", "z")}


def test_sources_and_packed_stores_have_the_same_pairs(tmp_path, no_roots_of_this_machine):
    pack(build_benchmark("digits").manifest, tmp_path / "store")
    of_source = find_duplicates("digits:all", "digits:all", tmp_path / "one", threshold=2)
    store = str(tmp_path / "store")
    of_store = read_pairs(find_duplicates(store, store, tmp_path / "two", threshold=2).table)
    packed = {row["image_id"] for row in open_images(store).table.to_pylist()}
    ids = [
        {(r["image_id_a"], r["image_id_b"]) for r in rows if r["source_a"] == r["source_b"] == "digits"}
        for rows in (read_pairs(of_source.table), of_store)
    ]
    assert ids[0]
    assert {pair for pair in ids[0] if set(pair) <= packed} == ids[1]


def test_verdicts_come_into_the_table_and_onto_the_page(folders, tmp_path):
    out = tmp_path / "out"
    rows = read_pairs(find_duplicates(*folders, out).table)
    note = dict.fromkeys(rows[0], "") | {"source_a": "a", "image_id_a": "class-1/5"}
    note |= {"verdict": "leave out", "reviewer": "AB", "note": "shows =a\tdog"}
    write_pairs(out / "verdicts.tsv", [rows[1] | {"verdict": "different", "reviewer": "AB"}, note])
    report = find_duplicates(*folders, out)
    judged = read_pairs(report.table)
    assert [row["verdict"] for row in judged] == ["", "different", "", "leave out"]
    assert judged[3] == note
    assert report.judged == 2
    left_out = duplicate_images(judged)
    assert ("a", "class-1/5") in left_out
    assert ("b", rows[1]["image_id_b"]) not in left_out
    assert len(left_out) == 5
    page = report.page.read_text()
    assert page.count("<article") == 3
    assert page.count('<img src="data:') == 6
    assert "leave out\tAB" in page, "saving keeps what the page does not show"


def test_names_on_the_page_are_escaped(tmp_path, no_roots_of_this_machine):
    save(picture(1), tmp_path / "a" / "<script>.png")
    save(picture(1), tmp_path / "b" / 'x"onload=.png')
    page = find_duplicates(str(tmp_path / "a"), str(tmp_path / "b"), tmp_path / "out").page.read_text()
    assert "&lt;script&gt;" in page
    assert page.count("<script>") == 1
    assert 'x"onload' not in page


def test_another_comparison_in_the_folder_is_refused(folders, tmp_path):
    a, b = folders
    find_duplicates(a, b, tmp_path / "out")
    with pytest.raises(OutputError):
        find_duplicates(a, b, tmp_path / "out", threshold=4)
    shutil.copy(Path(b) / "1.png", Path(b) / "new.png")
    with pytest.raises(OutputError):
        find_duplicates(a, b, tmp_path / "out")
    shutil.copytree(b, tmp_path / "others")
    with pytest.raises(OutputError):
        find_duplicates(a, b, tmp_path / "others")


@pytest.mark.parametrize("options", [{"threshold": 41}, {"shard": (0, 3)}, {"shard": (4, 3)}])
def test_options_out_of_range_are_refused(folders, tmp_path, options):
    with pytest.raises(SplitsError):
        find_duplicates(*folders, tmp_path / "out", **options)


def test_a_folder_without_images_or_with_names_that_no_table_can_hold_is_refused(folders, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("")
    save(picture(1), tmp_path / "lines" / "1\n.png")
    for folder in ("texts", "nowhere", "lines"):
        with pytest.raises(SourceError):
            find_duplicates(folders[0], str(tmp_path / folder), tmp_path / "out")


def test_a_folder_needs_no_slash(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_duplicates("a", "b", "out").pairs == 3
    with pytest.raises(UnknownNameError):
        find_duplicates("a", "c", "out")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"verdict": "maybe", "reviewer": "AB"}, ", line 2"),
        ({"verdict": "same", "reviewer": "AB", "image_id_a": "77"}, ""),
        ({"verdict": "same"}, ", line 2"),
        ({"verdict": "same", "reviewer": "AB", "image_id_b": ""}, ", line 2"),
    ],
)
def test_malformed_verdicts_are_refused(folders, tmp_path, change, line):
    out = tmp_path / "out"
    rows = read_pairs(find_duplicates(*folders, out).table)
    write_pairs(out / "verdicts.tsv", [rows[0] | change])
    with pytest.raises(DataError) as caught:
        find_duplicates(*folders, out)
    assert caught.value.where == f"{out / 'verdicts.tsv'}{line}"
    (out / "verdicts.tsv").write_text("a,b\n")
    with pytest.raises(DataError):
        find_duplicates(*folders, out)


@pytest.mark.parametrize("distance", ["x", "-5", "1000000000", "129", "1.5", "nan", " 3", "\u0663", "1e1"])
def test_a_distance_that_is_no_number_of_bits_is_refused(folders, tmp_path, distance):
    table = find_duplicates(*folders, tmp_path / "out").table
    rows = read_pairs(table)
    write_pairs(table, [rows[0] | {"distance": distance}])
    with pytest.raises(DataError) as error:
        read_pairs(table)
    assert error.value.where == f"{table}, line 2"
    for known in ("", "0", "128"):
        write_pairs(table, [rows[0] | {"distance": known}])
        assert read_pairs(table)[0]["distance"] == known


def test_the_command_in_text_and_json(folders, tmp_path, capsys):
    words = ["duplicates", *folders, "--out", str(tmp_path / "out")]
    assert run(app, [*words, "--shard", "2/2"], "wordnet-splits") == 0
    assert "shards to run: 1" in capsys.readouterr().out
    assert run(app, [*words, "--shard", "1/2", "--json"], "wordnet-splits") == 0
    assert json.loads(capsys.readouterr().out)["shards_missing"] == []
    assert run(app, [*words, "--shard", "two"], "wordnet-splits") == 2
    assert mentions(capsys.readouterr().err, "two", "I/N")
    assert run(app, ["duplicates", "cifra10", "digits", "--out", str(tmp_path / "x")], "wordnet-splits") == 2
    assert "cifar10" in capsys.readouterr().err


def test_recall_is_1_against_all_pairs_on_real_pictures(real_data, monkeypatch):
    from wordnet_splits.duplicates import close_hashes as ch

    root = real_data / "tiny-imagenet-200"
    if not (root / "val").is_dir():
        pytest.skip("Tiny ImageNet is not among the real datasets")
    ids = open_images("tiny-imagenet:val", {"tiny-imagenet": root})
    keys = ids.table["key"].to_pylist()[:600]
    values, problems = hashing.hash_chunk((ids.reader, "tiny", keys, keys))
    assert not problems
    hashes = np.frombuffer(b"".join(values), np.uint8).reshape(-1, 16)
    rng = np.random.default_rng(0)
    flips = rng.random((600, 128)) < np.linspace(0, 0.12, 600)[:, None]
    changed = np.packbits(np.unpackbits(hashes, axis=1) ^ flips, axis=1)
    expected = {
        (i, j)
        for i, j in np.argwhere(
            np.unpackbits(hashes[:, None] ^ changed[None], axis=2).sum(axis=2) <= 8
        ).tolist()
    }
    monkeypatch.setattr(ch, "DENSE_PAIRS", 1000)
    found = {
        (i, j)
        for a, b, _ in ch.close_pairs(hashes, changed, 8)
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    }
    assert found == expected
    assert len(expected) > 300
