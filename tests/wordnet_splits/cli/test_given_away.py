"""A benchmark of one's own is complete in itself: a stranger needs its folder and the pictures, no more."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.selection import cases
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import DataError, ManifestError, RecipeError
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.catalog.declarations import LOCAL
from wordnet_splits.datasets.catalog.table import CATALOGS_OF_PACKAGES
from wordnet_splits.datasets.sources.layouts import layout

pytestmark = pytest.mark.extensions("wordnet_splits.authoring", "wordnet_splits.explorer")

CLASSES = ["golden retriever", "teapot", "zebra", "acoustic guitar"]
ROOT = ("--root", "mypics=pics")
SENTENCE = ("--id", "mypics:golden retriever,teapot", "--near", "mypics", "--far", "digits:0,1")
ABOUT = 'licence = "CC0"\nbibtex = "@misc{mypics, title={Mine}}"\n'
Home = Callable[[str], Command]


@pytest.fixture
def home(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Command]:
    """Go to somebody's home: their folder and settings, and nothing known that others declared."""

    def go(name: str) -> Command:
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
        return Command(capsys, monkeypatch, tmp_path / name)

    return go


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of author and stranger, which `author` and `stranger` copy.

    The author has pictures, a catalog, an inventory and a recipe; ``dataset.toml`` is gone again. The
    stranger has the manifest's folder and the pictures.
    """
    folder = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        (folder / "author").mkdir()
        patch.chdir(folder / "author")
        own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 2})
        own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 2})
        own.declare(Path("pics"), "mypics", "folders", ABOUT)
        for arguments in (("sources", "inventory", "mypics"), ("new", "mine", *SENTENCE)):
            assert run(app, [*arguments, *ROOT], "wordnet-splits") == 0
        Path("pics/dataset.toml").unlink()
        patch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
        assert run(app, ["build", "mine.toml", *ROOT, "--out", "../stranger"], "wordnet-splits") == 0
    pictures = shutil.ignore_patterns("mypics.*")
    shutil.copytree(folder / "author" / "pics", folder / "stranger" / "pics", ignore=pictures)
    return folder


@pytest.fixture
def author(homes: Path, home: Home, tmp_path: Path) -> Command:
    """The author, in a folder of their own."""
    shutil.copytree(homes / "author", tmp_path / "author")
    return home("author")


@pytest.fixture
def stranger(homes: Path, author: Command, home: Home, tmp_path: Path) -> Command:
    """Somebody else, in a folder of their own beside the author's."""
    shutil.copytree(homes / "stranger", tmp_path / "stranger")
    return home("stranger")


def test_the_recipe_needs_no_other_declaration(author: Command) -> None:
    text = Path("mine.toml").read_text("utf-8")
    assert '[[source]]\nname = "mypics"\nlayout = "folders"\ncatalog = "pics/mypics.tsv"\n' in text
    assert author("build", "mine.toml", *ROOT).code == 0
    folder = Path("build/mine/sources")
    for name in ("mypics.tsv", "mypics.inventory.parquet"):
        assert (folder / name).read_bytes() == (Path("pics") / name).read_bytes()
    assert (folder / "mypics.toml").read_text("utf-8") == (
        'name = "mypics"\nlayout = "folders"\ncatalog = "mypics.tsv"\n' + ABOUT
    )
    assert LOCAL.by_name == {}, "nothing stays known when the command is done"


def test_a_stranger_verifies_it_with_the_pictures_and_without(stranger: Command) -> None:
    (found,) = stranger("verify", "./mine", *ROOT, "--json").json["benchmarks"]
    assert found["ok"]
    counted = [(g["group"], g["ids"], g["pixels"]) for g in found["groups"] if g["split"] == "test"]
    assert counted[:2] == [("known", 4, 4), ("near-mypics", 4, 4)]
    (found,) = stranger("verify", "./mine", "--json").json["benchmarks"]
    assert [(g["ids"], g["pixels"]) for g in found["groups"] if g["split"] == "test"][:2] == [(4, 0), (4, 0)]
    own.picture(999).save("pics/test/zebra/picture 0.png")
    (problem,) = stranger("verify", "./mine", *ROOT, "--json").json["benchmarks"][0]["problems"]
    assert (problem["kind"], problem["image_id"]) == ("altered", "test/zebra/picture 0")


def test_a_stranger_does_all_else_with_it(stranger: Command) -> None:
    from wordnet_splits.explorer.benchmark_pages import index_entry

    row = stranger("explain", "./mine", "zebra", *ROOT, "--json").json
    assert (row["role"], row["nearest_id"]) == ("near", "golden retriever")
    found = stranger("sources", "check", "--manifests", ".", *ROOT, "--json").json
    assert {s["name"]: s["state"] for s in found["sources"]}["mypics"] == "complete"
    (mine,) = [b for b in found["benchmarks"] if b["name"] == "mine"]
    assert (mine["complete"], mine["pixels"]["mypics"]) == (True, "complete")
    assert stranger("pack", "./mine", *ROOT, "--out", "packed").code == 0
    assert "every byte is as it was packed" in stranger("pack", "--check", "./mine", "--out", "packed").out
    assert stranger("export", "./mine", "--format", "csv", "--out", "csv").code == 0
    assert any("test/zebra/picture 0" in table.read_text("utf-8") for table in Path("csv").rglob("*.csv"))
    assert stranger("audit", "leaks", "./mine").code == 0
    assert stranger("audit", "near-duplicates", "./mine", *ROOT).code == 0
    assert "@misc{mypics, title={Mine}}" in stranger("cite", "./mine").out
    assert stranger("build", "./mine", *ROOT, "--out", "again").code == 0
    assert stranger("diff", "./mine", "again/mine").code == 0
    assert stranger("audit", "robust", "./mine").code == 0
    rebuild = index_entry(load_manifest("./mine"))["command"]
    assert rebuild == "wordnet-splits build ./mine --root mypics=DIR"
    assert stranger("freeze", "mine", "--built", ".", "--manifests", "frozen").code == 0
    assert stranger("diff", "./mine", "frozen/mine").code == 0
    assert stranger("verify", "--manifests", "frozen").code == 0
    assert LOCAL.by_name == {}


def test_a_stranger_describes_it_in_croissant(stranger: Command) -> None:
    pytest.importorskip("mlcroissant", reason="pip install '.[hub]'")
    assert "mypics: CC0" in stranger("hub", "croissant", "./mine").out


def test_the_variable_of_a_root_does_as_well(stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_MYPICS", "pics")
    (found,) = stranger("verify", "./mine", "--json").json["benchmarks"]
    assert [g["pixels"] for g in found["groups"] if g["split"] == "test"][:2] == [4, 4]


@pytest.mark.faults
@pytest.mark.parametrize("workers", cases([0, 1], always=0))
def test_an_opened_source_asks_nobody_what_its_name_means(stranger: Command, workers: int) -> None:
    torch = pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    data = UnknownDetectionSet("./mine", role="near", roots={"mypics": "pics"}, allow_missing=True)
    assert LOCAL.by_name == {}
    assert (len(data), data.classes) == (4, ["golden retriever", "teapot"])
    elsewhere = pickle.loads(pickle.dumps(data))  # which a worker does in a process of its own
    loader = torch.utils.data.DataLoader(
        elsewhere,
        batch_size=2,
        num_workers=workers,
        collate_fn=list,
        multiprocessing_context="spawn" if workers else None,
    )
    pictures = [image.tobytes() for batch in loader for image, label in batch]
    assert pictures == [image.tobytes() for image, label in data]
    recipe = load_recipe(data.manifest)
    assert pickle.loads(pickle.dumps(recipe)).declarations == recipe.declarations != {}


def change(path: Path, before: str, after: str) -> None:
    """Replace a text in a file that holds it."""
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")


def tamper(what: str) -> None:
    """Alter one of the files that the manifest carries."""
    folder = Path("mine/sources")
    if what == "catalog":
        change(folder / "mypics.tsv", "n02391049", "n02389026")
    elif what == "declaration":
        change(folder / "mypics.toml", "CC0", "CC1")
    elif what == "elsewhere":
        shutil.copy(folder / "mypics.tsv", "other.tsv")
        change(folder / "mypics.toml", '"mypics.tsv"', '"../../other.tsv"')
    elif what == "link":
        (folder / "mypics.tsv").rename("other.tsv")
        (folder / "mypics.tsv").symlink_to(Path("other.tsv").absolute())
    elif what == "inventory":
        shutil.copy("mine/images/test/known.parquet", folder / "mypics.inventory.parquet")
    else:
        (folder / what).unlink()


@pytest.mark.parametrize(
    "what", ["catalog", "declaration", "elsewhere", "link", "inventory", "mypics.toml", "mypics.tsv"]
)
def test_what_is_carried_is_compared(stranger: Command, what: str) -> None:
    tamper(what)
    done = stranger("verify", "./mine", *ROOT)
    assert done.code in (1, 2)
    assert "mypics" in done.err
    with raises(ManifestError, naming="mypics"):
        load_manifest("./mine")


def test_what_is_added_is_found(stranger: Command) -> None:
    Path("mine/sources/other.tsv").write_text("x", "utf-8")
    (problem,) = stranger("verify", "./mine", "--json").json["benchmarks"][0]["problems"]
    assert problem["detail"] == "sources/other.tsv belongs to no manifest"


def test_an_inventory_that_the_manifest_does_not_know_is_found(author: Command) -> None:
    inventory = Path("pics/mypics.inventory.parquet").rename("inventory")
    assert author("build", "mine.toml", *ROOT).code == 0
    assert author("verify", "build/mine", *ROOT).code == 0
    shutil.copy(inventory, "build/mine/sources/mypics.inventory.parquet")
    done = author("verify", "build/mine")
    assert done.code == 1
    assert "mypics.inventory.parquet is not in manifest.json" in done.err


def test_another_dataset_of_that_name_here_is_refused(stranger: Command) -> None:
    own.declare(Path("pics"), "mypics", "folders")
    catalog = Path("pics/mypics.tsv")
    shutil.copy("mine/sources/mypics.tsv", catalog)
    assert stranger("verify", "./mine", *ROOT).code == 0, "the same dataset, declared twice"
    own.catalog(catalog, CLASSES[::-1], {"train": 1, "test": 2})
    said = stranger("verify", "./mine", *ROOT).error
    assert mentions(said, "mypics")
    assert "its catalog differs" in said
    assert stranger("pack", "./mine", *ROOT, "--out", "packed").error
    pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    with pytest.raises(DataError):
        UnknownDetectionSet("./mine", roots={"mypics": "pics"})


def test_a_catalog_newer_than_the_build_is_refused_until_it_is_built_again(author: Command) -> None:
    own.declare(Path("pics"), "mypics", "folders")
    assert author("build", "mine.toml", *ROOT).code == 0
    change(Path("pics/mypics.tsv"), "n02391049", "n02389026")
    said = author("verify", "build/mine", *ROOT).error
    assert mentions(said, "build")
    assert author("build", "mine.toml", *ROOT).code == 0
    assert author("verify", "build/mine", *ROOT).code == 0


def test_two_benchmarks_may_not_mean_two_datasets_by_one_name(stranger: Command) -> None:
    shutil.copytree("../author/pics", "theirs/pics")
    shutil.copy("../author/mine.toml", "theirs/yours.toml")
    change(Path("theirs/yours.toml"), 'name = "mine"', 'name = "yours"')
    change(Path("theirs/pics/mypics.tsv"), "n02391049", "n02389026")
    assert stranger("build", "theirs/yours.toml", "--root", "mypics=theirs/pics", "--out", ".").code == 0
    assert stranger("verify", "./mine", "./yours", *ROOT).error
    assert stranger("verify", "./mine").code == stranger("verify", "./yours").code == 0
    assert stranger("diff", "./mine", "./yours").code == 0, "other synsets, the same images"
    states = stranger("sources", "check", "--manifests", ".", "--json").json["benchmarks"]
    errors = {b["name"]: b["error"] for b in states if b["name"] in ("mine", "yours")}
    assert errors["mine"] is None
    assert "declares another dataset 'mypics'" in errors["yours"]["what"]


def test_a_package_with_a_source_of_that_name_is_refused(
    author: Command, stranger: Command, isolated: Callable[..., None]
) -> None:
    """Its catalog would be read in place of the carried one."""
    recipe = Path("../author/mine.toml").absolute()
    isolated(CATALOGS_OF_PACKAGES, [("mypics", "not_imported:Pictures")])
    with raises(ManifestError, where="sources/mypics.toml", naming="mypics"):
        load_manifest("./mine")
    assert stranger("verify", "./mine", *ROOT).code == 2
    with raises(RecipeError, where="source 'mypics'"):
        load_recipe(recipe)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('layout = "folders"', 'layuot = "folders"', "line 19: unknown key 'layuot'; did you mean 'layout'"),
        ('layout = "folders"', 'layout = "folder"', "unknown layout 'folder'; did you mean 'folders'"),
        ("[[source]]", "[[sources]]", "unknown key 'sources'; did you mean 'source'"),
        ("[[source]]", "[source]", "`source` must be a list of tables (begin each with [[source]])"),
        ('catalog = "pics/mypics.tsv"', "", "the key 'catalog' is missing"),
        ("pics/mypics.tsv", "../stranger/mypics.tsv", "source 'mypics': the path '../stranger/mypics.tsv'"),
        ("pics/mypics.tsv", "/etc/passwd", "source 'mypics': the path '/etc/passwd' leaves its folder"),
        ("pics/mypics.tsv", "mypics.tsv", "the catalog does not exist"),
        (
            'name = "mypics"\nlayout',
            'name = "digits"\nlayout',
            "source 'digits': ",
        ),
        (
            "[[source]]",
            '[[source]]\nname = "a"\nlayout = "csv"\ncatalog = "a"\n' * 2 + "[[source]]",
            "'a' twice",
        ),
    ],
)
def test_a_mistake_in_the_recipes_source_is_one_line(
    author: Command, before: str, after: str, said: str
) -> None:
    change(Path("mine.toml"), before, after)
    found = author("build", "mine.toml", *ROOT).error
    assert said in found
    assert not Path("build").exists() or not list(Path("build").glob("mine"))


def test_recipe_and_dataset_toml_must_agree(author: Command) -> None:
    own.declare(Path("pics"), "mypics", "folders", 'splits = ["test"]\n')
    said = author("build", "mine.toml", *ROOT).error
    assert "declares another dataset 'mypics'" in said
    assert mentions(said, "test")


def test_an_inventory_is_made_of_what_the_recipe_declares(author: Command) -> None:
    frozen = Path("pics/mypics.inventory.parquet").read_bytes()
    Path("pics/mypics.inventory.parquet").unlink()
    assert mentions(author("sources", "inventory", "mypics", *ROOT).error, "mypics")
    done = author("sources", "inventory", "mypics", *ROOT, "--declared", "mine.toml")
    assert done.code == 0, done.err
    assert Path("pics/mypics.inventory.parquet").read_bytes() == frozen
    assert mentions(author("sources", "inventory", "mypix", "--declared", "mine.toml").error, "mypix")
    assert author("sources", "inventory", "mypics", "--declared", "none.toml").code == 2


def test_a_root_is_judged_after_the_recipe_is_read(author: Command) -> None:
    said = author("build", "mine.toml", "--root", "mypix=pics").error
    assert mentions(said, "mypix", "mypics", "--root")
    assert mentions(author("build", "digits", *ROOT).error, "mypics")


def test_a_variant_has_the_sources_of_its_base_and_its_own(author: Command) -> None:
    Path("more").mkdir()
    own.class_folders(Path("more/far"), ["tiger"], {"": 3})
    own.catalog(Path("more/far.tsv"), ["tiger"], {"all": 3})
    Path("more/variant.toml").write_text(
        'extends = "mine.toml"\nname = "variant"\ndrop = ["far-digits"]\n'
        '[[source]]\nname = "farpics"\nlayout = "folders"\ncatalog = "far.tsv"\n'
        '[[group]]\nname = "far"\nrole = "far"\nsource = "farpics"\n'
        'classes = { listed = ["tiger"] }\nimages = { test = { from = "all", all = true } }\n',
        "utf-8",
    )
    done = author("build", "more/variant.toml", *ROOT, "--root", "farpics=more/far")
    assert done.code == 0, done.err
    assert set(load_manifest("build/variant").declarations) == {"mypics", "farpics"}


def test_new_says_what_the_recipe_cannot_declare(author: Command) -> None:
    own.declare(Path("pics"), "mypics", "folders")
    done = author("new", "away", *SENTENCE, *ROOT, "--out", "recipes/away.toml", "--json")
    assert "away.toml does not declare mypics, whose catalog is not below" in done.err
    (note,) = done.json["notes"]
    assert "pics/dataset.toml" in note
    assert "[[source]]" not in Path("recipes/away.toml").read_text("utf-8")
    assert author("build", "recipes/away.toml", *ROOT).code == 0, "it is known beside the pictures"
    assert load_manifest("build/away").declarations.keys() == {"mypics"}


def test_shipped_benchmarks_say_nothing_of_sources() -> None:
    data = load_manifest("digits").data.as_dict()
    assert "sources" not in data["fingerprints"]


def test_a_layout_that_is_not_installed_is_refused_when_images_are_read(
    stranger: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = layout.LAYOUTS.registered
    monkeypatch.delitem(layout.LAYOUTS._entries, "folders")
    assert load_manifest("./mine").declarations["mypics"].layout == "folders"
    assert mentions(stranger("verify", "./mine", *ROOT).error, "folders"), "and exit code 2"
