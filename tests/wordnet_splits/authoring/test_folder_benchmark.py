"""`benchmark FOLDER`: from pictures to pages by one command, whose steps are commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.benchmark.construct import Build, build_benchmark
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog, read_catalog

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

SURE = ["golden retriever", "teapot", "zebra", "acoustic guitar", "kangaroo"]
WORDLESS = "blorf"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


@pytest.fixture
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages take seconds; one test writes them."""
    from wordnet_splits.authoring import folder_benchmark
    from wordnet_splits.explorer import Site

    def make_site(out: Path, benchmarks: list[Path], **options: Any) -> Site:
        return Site(out, (), (), 0, 0)

    monkeypatch.setattr(folder_benchmark, "make_site", make_site)


def roles(folder: str, source: str | None = None) -> dict[str, set[str]]:
    rows = load_manifest(Path(folder), check="classes").classes.to_pylist()
    of_role: dict[str, set[str]] = {}
    for row in rows:
        if row["source"] == source or (source is None and row["source"] != "cifar100"):
            of_role.setdefault(row["role"], set()).add(row["class_id"])
    return of_role


def test_one_command_goes_from_pictures_to_pages_and_each_step_is_a_command(command: Command) -> None:
    own.class_folders(Path("My pics"), SURE, {"": 2})
    known = "cifar100:fox,camel,bottle,kangaroo"
    Path("map.tsv").write_text("teapot\tteapot.n.01\n")
    done = command("benchmark", "My pics", "--known", known, "--out", ".", "--ids", "map.tsv")
    assert done.code == 0, done.err
    assert Path("site/my-pics/index.html").is_file()
    assert {path.name for path in Path("My pics").iterdir()} == set(SURE)  # nothing is written there
    assert roles("./my-pics") == {
        "near": {"teapot", "zebra"},
        "far": {"golden retriever", "acoustic guitar"},
        "excluded": {"kangaroo"},
    }
    assert (
        "equal to an ID class, or above or below one: kangaroo; kangaroo: not near-my-pics: kangaroo is"
        in done.out
    )
    assert "chosen" in done.out
    assert "balanced at 0.49: 2 near and 2 far; the farthest near class, zebra, is" in done.out
    assert "margin 0.0" in done.out
    fingerprint = load_manifest(Path("my-pics")).fingerprint
    steps = [shlex.split(line[2:])[1:] for line in done.out.splitlines() if line.startswith("$ ")]
    names = ["catalog", "sources", "audit", "new", "build", "verify", "site"]
    assert [step[0] for step in steps] == names
    assert steps[0][-2:] == ["--ids", "map.tsv"]
    Path("my-pics.toml").unlink()
    for step in steps:
        assert command(*step).code == 0, step
    assert load_manifest(Path("my-pics")).fingerprint == fingerprint


@pytest.mark.usefixtures("no_pages")
def test_unsure_classes_stop_it_unless_they_are_accepted_and_are_never_frozen(command: Command) -> None:
    own.class_folders(Path("pics"), [*SURE, WORDLESS, "air fryer"], {"": 2})
    words = ("benchmark", "pics", "--known", "cifar100", "--out", "made")
    stopped = command(*words)
    assert stopped.code == 3
    assert "2 classes to be confirmed" in stopped.out
    assert {path.name for path in Path("made").iterdir()} == {
        "dataset.toml",
        "pics.tsv",
        "pics.explained.tsv",
    }
    made = command(*words, "--accept", "--json").json
    assert (set(made["unsure"]), made["verified"]) == ({WORDLESS, "air fryer"}, True)
    accepted = "\n".join(made["steps"][0]["result"])
    assert "accepted without confirmation: 1 synset" in accepted
    assert "  air fryer: n0" in accepted
    assert "accepted without a synset, in no group: 1 class" in accepted
    assert WORDLESS in roles("made/pics")["excluded"]
    frozen = command("freeze", "pics", "--built", "made", "--manifests", "frozen")
    assert frozen.error


@pytest.mark.usefixtures("no_pages")
def test_a_table_beside_the_folders_is_said_and_read_once_it_is_declared(command: Command) -> None:
    head = ("file", "label", "split")
    rows = [(f"bilder/{name} {split}.png", name, split) for name in SURE for split in ("train", "test")]
    own.table(Path("Café pics"), rows, head)
    words = ("benchmark", "Café pics", "--known", "cifar100", "--out", "made")
    stopped = command(*words)
    assert "made/dataset.toml, which declares the dataset cafe-pics" in stopped.out
    assert 'labels.csv is not read: if it has the classes, write layout = "csv" in made' in stopped.out
    declaration = Path("made/dataset.toml")
    declaration.write_text(declaration.read_text("utf-8").replace("folders", "csv"), "utf-8")
    assert command(*words).code == 0
    assert roles("made/cafe-pics")["excluded"] == {"kangaroo"}


@pytest.mark.usefixtures("no_pages")
def test_the_same_command_goes_on_where_it_stopped(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from wordnet_splits.authoring import folder_benchmark

    own.class_folders(Path("pics"), SURE, {"train": 2, "test": 1})
    words = ("benchmark", "pics", "--known", "cifar100", "--out", "made", "--name", "mine", "--json")

    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder_benchmark, "build_benchmark", interrupted)
        assert command(*words).code == 130
    recipe = Path("made/mine.toml").read_text("utf-8")
    made = command(*words).json
    assert made["verified"]
    assert any("as frozen before" in line for step in made["steps"] for line in step["result"])
    assert Path("made/mine.toml").read_text("utf-8") == recipe
    Path("made/mine.toml").write_text(recipe.replace("seed = 0  ", "seed = 1  "), "utf-8")
    done = command(*words)
    assert done.code == 2
    assert json.loads(done.out)["error"]["where"] == "made/mine.toml"


@pytest.mark.usefixtures("no_pages")
def test_a_catalog_by_hand_stays_and_its_unconfirmed_synsets_are_said(command: Command) -> None:
    own.class_folders(Path("pics"), SURE[:4], {"train": 1, "test": 1})
    own.declare(Path("pics"), "mypics", "folders")
    own.catalog(Path("pics/mypics.tsv"), SURE[:4], {"train": 1, "test": 1})
    words = ("benchmark", "pics", "--known", "cifar100:fox,camel", "--out", "made")
    text = Path("pics/mypics.tsv").read_text("utf-8").replace("\texact\t", "\tproposed\t", 1)
    Path("pics/mypics.tsv").write_text(text, "utf-8")
    done = command(*words)
    assert done.code == 3
    assert "pics/mypics.tsv was not made by `catalog make`, and stays as it is" in done.out
    assert "1 class to be confirmed" in done.out
    Path("pics/mypics.tsv").write_text(text.replace("\tproposed\t", "\thand\tchecked", 1), "utf-8")
    done = command(*words)
    assert done.code == 0
    assert "catalog make --root" not in done.out


@pytest.mark.usefixtures("no_pages")
def test_the_sizes_announced_are_those_built_with_classes_mapped_by_their_head_noun(command: Command) -> None:
    own.class_folders(
        Path("pics"), ["office chair", "kitchen chair", "zebra", "guest room", "teapot"], {"": 1}
    )
    words = ("benchmark", "pics", "--known", "imagenet1k:n02791124,n02123045", "--out", "made", "--accept")
    made = command(*words, "--json").json  # n02791124: barber chair
    mapped = {item.class_id: item.mapped for item in read_catalog(Path("made/pics.tsv"))}
    assert mapped["office chair"] == mapped["kitchen chair"] == "head"
    found = roles("made/pics", "pics")
    sizes = {role: len(found[role]) for role in ("near", "far")}
    assert sizes == {role: made["threshold"][role] for role in sizes}
    assert {"office chair", "kitchen chair"} <= found["near"]


@pytest.mark.usefixtures("no_pages")
def test_a_declaration_may_lie_apart_from_pictures_that_cannot_be_written_beside(command: Command) -> None:
    own.class_folders(Path("pics"), SURE, {"": 2})
    paths = sorted(path.relative_to("pics") for path in Path("pics").rglob("*.png"))
    rows = (f"{path},{path.parent}" for path in paths if path.parent.name != "kangaroo")
    Path("pics/list.csv").write_text("\n".join(["image,class", *rows]) + "\n", "utf-8")
    Path("table").mkdir()
    own.declare(Path("table"), "mypics", "csv")
    words = ("benchmark", "pics", "--known", "cifar100:fox,camel", "--declared", "table/dataset.toml")
    done = command(*words, "--out", "made")
    assert done.code == 0, done.err
    assert {path.name for path in Path("table").iterdir()} == {"dataset.toml"}
    assert {"dataset.toml", "mypics.tsv", "mypics.inventory.parquet"} <= {
        p.name for p in Path("made").iterdir()
    }
    assert "kangaroo" not in Path("made/mypics.tsv").read_text("utf-8")  # the table lacks it
    fingerprint = load_manifest(Path("made/mypics")).fingerprint
    steps = [shlex.split(line[2:])[1:] for line in done.out.splitlines() if line.startswith("$ ")]
    Path("made/mypics.toml").unlink()
    for step in steps[:-1]:
        assert command(*step).code == 0, step
    assert load_manifest(Path("made/mypics")).fingerprint == fingerprint
    assert command(*words, "--out", "made").code == 0
    own.declare(Path("table"), "mypics", "csv", 'title = "Others"\n')
    assert mentions(command(*words, "--out", "made").error, "made/dataset.toml")
    group = (
        '[[group]]\nname = "a"\nrole = "id"\nsource = "digits"\nclasses = { listed = ["0"] }\nimages = {}\n'
    )
    Path("none.toml").write_text(f'schema = 1\nname = "x"\n{group}', "utf-8")
    assert command(*words[:-1], "none.toml", "--out", "other").error
    assert not Path("other").exists()


@pytest.mark.usefixtures("no_pages")
def test_a_build_that_does_not_agree_is_said(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from wordnet_splits.authoring import folder_benchmark

    own.class_folders(Path("pics"), SURE[:4], {"": 1})
    build = build_benchmark

    def altered(*arguments: Any, **options: Any) -> Build:
        built = build(*arguments, **options)
        own.picture(99).save("pics/zebra/picture 0.png")
        return built

    monkeypatch.setattr(folder_benchmark, "build_benchmark", altered)
    done = command("benchmark", "pics", "--known", "cifar100:fox,camel", "--out", "made")
    assert done.code == 1
    assert "  altered: " in done.out


@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize("known", ["list.txt", "mine:zebra,kangaroo"])
def test_the_known_classes_may_be_of_the_folder(command: Command, known: str) -> None:
    own.class_folders(Path("pics"), SURE, {"train": 1, "test": 1})
    Path("list.txt").write_text("zebra\nkangaroo\n", "utf-8")
    words = ("benchmark", "pics", "--known", known, "--out", "made", "--name", "mine", "--json")
    made = command(*words).json
    assert made["verified"]
    found = roles("made/mine")
    assert found["id"] == {"zebra", "kangaroo"}
    assert "golden retriever" in found["near"]
    (threshold,) = [step["command"] for step in made["steps"] if " thresholds " in step["command"]]
    assert command(*shlex.split(threshold)[1:]).code == 0
    bound = load_recipe(Path("made/mine.toml")).group[1].classes.value[0].value.above
    assert bound == made["threshold"]["threshold"]


@pytest.mark.parametrize(
    ("classes", "options", "said"),
    [
        ([], ["--known", "cifar100"], ()),
        (SURE, ["--known", "cifar10O"], ("cifar10O", "--known")),
        (SURE, ["--known", "cifar100:foxx"], "foxx"),
        (SURE, ["--known", "cifar100:5"], "cifar100:5"),
        (SURE, ["--known", "list.txt"], ()),
        (SURE, ["--known", "cifar100", "--of", "cifar100"], "--of"),
        (SURE, ["--known", "cifar100", "--name", "digits"], ("digits", "benchmark")),
        (SURE, ["--known", "cifar100", "--name", "cifar10"], ()),
        (SURE, ["--known", "cifar100", "--out", "pics/made"], ()),
        ([WORDLESS, "qwrtz"], ["--known", "cifar100"], "2"),
        (
            ["teapot", "zebra"],
            ["--known", "imagenet1k"],
            "2",
        ),
        (["teapot"], ["--known", "cifar100"], ()),
    ],
)
def test_a_mistake_is_one_line(
    command: Command, classes: list[str], options: list[str], said: object
) -> None:
    Path("pics/no pictures").mkdir(parents=True)
    own.class_folders(Path("pics"), classes, {"": 1})
    done = command("benchmark", "pics", "--out", "made", "--accept", *options)
    assert done.code == 2
    (error,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert mentions(error, said)
    assert not Path("made/pics.toml").exists()
    assert {path.name for path in Path("pics").iterdir()} == {*classes, "no pictures"}


@pytest.mark.parametrize("splits", [{"": 2}, {"train": 2, "val": 1}])
def test_a_part_of_the_known_source_is_proposed_as_id(command: Command, splits: dict[str, int]) -> None:
    wnids = ["n02099601", "n02391049", "n02676566", "n04398044"]
    own.class_folders(Path("part of it"), wnids, splits)
    words = ("benchmark", "part of it", "--known", "imagenet1k", "--name", "part", "--out", "made")
    done = command(*words)
    assert done.code == 2
    proposed = shlex.split(done.err[done.err.index("wordnet-splits new") :].strip().removesuffix(")"))[1:]
    assert command(*proposed).code == 0
    recipe = load_recipe(Path("made/part.toml"))
    assert ["train" in group.images for group in recipe.group] == ["train" in splits, False, False]
    manifest = build_benchmark(recipe).manifest
    rows = [row for row in manifest.classes.to_pylist() if row["group"]]
    ids = {role: {row["class_id"] for row in rows if row["role"] == role} for role in ("id", "near", "far")}
    assert ids["id"] == set(wnids)
    others = {item.class_id for item in load_catalog("imagenet1k")} - ids["id"]
    assert ids["near"] | ids["far"] <= others
    assert abs(len(ids["near"]) - len(ids["far"])) < 100


@pytest.mark.parametrize(
    ("splits", "tested"), [({"test": 2}, 2), ({"": 2}, 2), ({"train": 3, "test": 1}, 1), ({"train": 2}, 2)]
)
def test_without_train_every_image_of_the_test_split_is_tested(
    command: Command, splits: dict[str, int], tested: int
) -> None:
    own.class_folders(Path("pics"), own.SYNSETS, splits)
    own.declare(Path("pics"), "mypics", "folders")
    assert command("catalog", "make", "--root", "pics", "--out", "pics/mypics.tsv").code == 0
    root = ("--root", "mypics=pics")
    words = ("new", "mine", "--id", "mypics:zebra,teapot", "--near", "mypics", "--no-train", *root)
    assert command(*words, "--external", "digits").code == 2
    made = command(*words)
    assert made.code == 0
    assert ("train images are test images" in made.err) == ([*splits] == ["train"])
    assert command("build", "mine.toml", *root).code == 0
    groups = load_manifest(Path("build/mine")).groups
    counts = {(g.role, g.split): g.actual for g in groups if g.split != "classes"}
    assert counts == {("id", "test"): 2 * tested, ("near", "test"): 2 * tested}
