"""The site of an author's own benchmark: its pictures as far as licences allow, its download, its pages."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.explorer.pages import Reader, read
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.explorer import make_site
from wordnet_splits.explorer.sample_images import check_roots

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

CLASSES = ["golden retriever", "teapot", "zebra", "acoustic guitar"]
ROOT = ("--root", "mypics=pics")


@pytest.fixture
def make(command: Command) -> Callable[[str], None]:
    """A function that builds ``build/mine`` from pictures with more keys in their declaration."""

    def build(more: str = "", about: str = "") -> None:
        own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 3})
        own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 3})
        own.declare(Path("pics"), "mypics", "folders", more)
        id_classes = "mypics:golden retriever,teapot"
        assert command("new", "mine", "--id", id_classes, "--near", "mypics", *ROOT).code == 0
        recipe = Path("mine.toml").read_text("utf-8")
        Path("mine.toml").write_text(f"{recipe}\n{about}", "utf-8")
        assert command("build", "mine.toml", *ROOT).code == 0

    return build


def test_the_site_of_one_benchmark_has_nothing_else(command: Command, make: Callable[..., None]) -> None:
    make()
    made = command("site", "./build/mine", "--out", "pages", *ROOT, "--images", 2)
    assert made.out.startswith("1 benchmark, ")
    assert made.err == ""
    folder = Path("pages")
    assert sorted(path.name for path in (folder / "data").iterdir()) == [
        *("benchmark", "distances.js", "index.js", "search.js", "synsets.js")
    ]
    (about,) = read(folder, "index")["benchmarks"]
    assert about["load"].splitlines()[:2] == [
        "from wordnet_splits.torch import UnknownDetectionSet",
        'test = UnknownDetectionSet("./mine", split="test", roots={"mypics": "DIR"})',
    ]
    assert [sentence[:23] for sentence in about["rules"].values()] == ["The classes of mypics t"] * 2, about[
        "rules"
    ]
    assert all("{" not in sentence for sentence in read(folder, "benchmark/mine")["rules"])
    page = read(folder, "benchmark/mine")
    known = [row["role"] != "excluded" for row in load_manifest("./build/mine").classes.to_pylist()]
    assert [len(files) for files in page["images"]] == [2 * taken for taken in known]
    for file in page["images"][0]:
        assert Image.open(folder / file).size == (64, 64)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.suffix != ".png")
    assert size < 200_000
    assert page["withheld"] == []


def test_the_download_is_the_benchmark(command: Command, make: Callable[..., None], tmp_path: Path) -> None:
    make()
    make_site("pages", ["./build/mine"])
    (about,) = read(Path("pages"), "index")["benchmarks"]
    file = Path("pages") / about["download"]["file"]
    assert file.stat().st_size == about["download"]["bytes"]
    before = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "unpacked")
    again = load_manifest(str(tmp_path / "unpacked" / "mine"))
    assert again.fingerprint == load_manifest("./build/mine").fingerprint
    assert list(again.declarations) == ["mypics"]
    make_site("pages", ["./build/mine"])
    assert file.read_bytes() == before
    assert read(Path("pages"), "benchmark/mine")["images"] == [[]] * len(again.classes)
    make_site("pages", ["digits"])
    assert read(Path("pages"), "index")["benchmarks"][0]["download"] is None


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("CC-BY-4.0", None),
        ("MIT (the authors)", None),
        (
            "CC-BY-NC-ND-4.0",
            "No images of mypics are shown: its licence (CC-BY-NC-ND-4.0) does not allow it.",
        ),
        ("CC BY 4.0, of pictures under other terms", "No images of mypics are shown: its licence"),
    ],
)
def test_pictures_are_shown_as_the_licence_allows(
    command: Command, make: Callable[..., None], licence: str, said: str | None
) -> None:
    make(f"licence = {json.dumps(licence)}\n")
    made = command("site", "./build/mine", "--out", "pages", *ROOT)
    page: dict[str, Any] = read(Path("pages"), "benchmark/mine")
    assert made.err == "".join(f"note: {sentence}\n" for sentence in page["withheld"])
    assert bool(list(Path("pages").rglob("*.png"))) == (said is None)
    if said is None:
        assert page["withheld"] == []
        assert [credit["licence"] for credit in page["credits"]] == [licence]
    else:
        (sentence,) = page["withheld"]
        assert sentence.startswith(said)
        assert page["credits"] == []


@pytest.mark.parametrize(
    ("author", "terms", "shown"),
    [
        ("Ada Lovelace", 'licence = "CC-BY-NC-4.0"', True),
        ("Charles Babbage", 'licence = "CC-BY-NC-4.0"', False),
        ("Charles Babbage", "", False),
        ("Charles Babbage", 'licence = "CC-BY-4.0"', True),
    ],
)
def test_pictures_of_the_author_are_shown_under_any_licence(
    command: Command, make: Callable[..., None], author: str, terms: str, shown: bool
) -> None:
    make(
        f'[about]\nauthors = [{{ name = "Ada Lovelace" }}]\n{terms}\n',
        f'[about]\nauthors = [{{ name = "{author}" }}, {{ name = "Example Lab", organisation = true }}]\n',
    )
    assert command("site", "./build/mine", "--out", "pages", *ROOT).code == 0
    page = read(Path("pages"), "benchmark/mine")
    assert [credit["authors"] for credit in page["credits"]] == ["Ada Lovelace"] * shown
    assert len(page["withheld"]) == (not shown)
    assert terms or page["withheld"] == ["No images of mypics are shown: it states no licence."]
    (about,) = read(Path("pages"), "index")["benchmarks"]
    assert [one["name"] for one in about["about"]["authors"]] == [author, "Example Lab"]


def test_a_source_without_a_fitting_licence_is_said(command: Command) -> None:
    make_site("pages", ["rungs-cifar100", "digits"], images=1)
    assert read(Path("pages"), "benchmark/rungs-cifar100")["withheld"] == [
        "No images of cifar100 are shown: its licence (none stated; the publisher asks for citation of the "
        "report) does not allow it."
    ]
    make_site("others", ["optimizers-fashion"], images=1)
    assert read(Path("others"), "benchmark/optimizers-fashion")["withheld"][:2] == [
        "No images of fashion-mnist are shown: its image ids are not known yet.",
        "No images of omniglot are shown: its image ids are not known yet.",
    ]
    assert [credit["source"] for credit in read(Path("pages"), "benchmark/digits")["credits"]] == [
        *("digits", "gaussian", "uniform")
    ]


def test_bad_names_roots_and_pictures_are_one_line(
    command: Command, make: Callable[..., None], tmp_path: Path
) -> None:
    make()
    words = ("site", "./build/mine", "--out", "pages")
    assert mentions(command("site", "digit", "--out", "pages", *ROOT).error, "digits")
    assert mentions(command(*words, "--root", "mnist=pics").error, "site")
    assert mentions(command(*words, "--root", "mypics").error, "mypics")
    assert "nowhere" in command(*words, "--root", "mypics=nowhere").error
    own.class_folders(tmp_path / "cats", ["cat"], {"train": 1})
    assert "cats" in command(*words, "--root", "mypics=cats").error
    (picture,) = (tmp_path / "pics" / "test" / "teapot").glob("picture 1.png")
    own.picture(99).save(picture)
    assert command(*words, *ROOT).error
    picture.unlink()
    assert command(*words, *ROOT).error
    assert not (tmp_path / "pages").exists()


def test_roots_of_the_sources_are_accepted() -> None:
    check_roots({"cifar100": "anywhere"}, [load_manifest("rungs-cifar100")])


def test_pictures_and_download_are_on_the_pages(
    browser: Any, command: Command, make: Callable[..., None], tmp_path: Path
) -> None:
    make()
    assert command("site", "./build/mine", "--out", "pages", *ROOT).code == 0
    reader = Reader(browser, tmp_path / "pages", viewport={"width": 390, "height": 900})

    def opens(route: str) -> None:
        assert reader.opens(route).evaluate("document.documentElement.scrollWidth") <= 390

    page = reader.page
    opens("")
    assert page.title() == "mine · wordnet-splits"
    assert page.locator("h1").text_content() == "mine"
    assert page.locator("nav a").all_text_contents() == ["Benchmark", "Search", "Distances"]
    assert page.locator("[aria-current]").all_text_contents() == ["Benchmark"]
    opens("diff/mine/mine")
    assert page.title().startswith("Not found")
    opens("benchmark/mine")
    assert page.locator("a[download]").get_attribute("href") == "download/mine.zip"
    link = page.locator("a", has_text="teapot")
    assert page.locator(".samples li", has=link).locator("img").count() == 4
    page.locator(".samples a", has_text="teapot").click()
    page.wait_for_selector("h1:text-is('teapot')")
    page.wait_for_function(
        "[...document.images].length == 4 && [...document.images].every(i => i.naturalWidth)"
    )
    assert page.get_by_alt_text("teapot, image 2 of 4").count() == 1
    assert "In other benchmarks" not in page.locator("main").text_content()
    page.click("a.home")
    page.wait_for_selector("h1:text-is('mine')")
    reader.close()


def test_a_class_page_counts_the_readings(browser: Any, tmp_path: Path) -> None:
    make_site(tmp_path / "pages", ["digits"])
    reader = Reader(browser, tmp_path / "pages")

    def told(class_id: str, source: str = "digits") -> Any:
        return (
            reader.opens(f"class/digits/{source}/{class_id}").locator("div", has_text="Other readings").last
        )

    # another sense of six is a whole number below no digit; ImageNet's tree keeps it below digit
    assert told("6").locator("summary").text_content() == "the role holds in 1 of 2"
    told("6").locator("summary").click()
    assert [text.rpartition(": ")[2] for text in told("6").locator("li").all_text_contents()] == [
        "excluded",
        "near",
    ]
    assert told("1").locator("dd").text_content() == "none applies: no rule on WordNet decides its role"
    assert told("all", "uniform").locator("dd").text_content() == "none applies: it has no synset"
    reader.close()
