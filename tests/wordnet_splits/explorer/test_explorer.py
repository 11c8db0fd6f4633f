"""The explorer in a real browser, from a disk: what a reader clicks, types and hears."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.selection import cases
from tests.wordnet_splits.explorer.conftest import HOSTILE, NAMES
from tests.wordnet_splits.explorer.pages import Reader, read, rows
from wordnet_splits.base.text_formats import write_sealed
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run

LADDER = "rungs-cifar100"
ASSETS = REPOSITORY / "wordnet_splits" / "data" / "site"
RESULTS = REPOSITORY / "manifests" / "results"
ROUTES = (
    "",
    "search?q=a",
    f"diff/digits/{LADDER}",
    "leaderboard",
    "sets",
    "audit",
    "fidelity",
    "imagenet21k",
)


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Reader]:
    one = Reader(browser, site)
    yield one
    one.close()


def test_the_pages_are_small_and_name_each_script_once() -> None:
    assert sum(path.stat().st_size for path in ASSETS.iterdir()) < 98_000
    page = (ASSETS / "index.html").read_text("utf-8")
    named = re.findall(r"assets/([\w.]+)", page)
    assert sorted(named) == sorted(path.name for path in ASSETS.iterdir() if path.suffix != ".html")
    scripts = "".join(path.read_text("utf-8") for path in ASSETS.glob("*.js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|fetch\(", scripts)


@pytest.mark.docs
def test_all_benchmarks_lead_to_their_pages(reader: Reader) -> None:
    page = reader.opens("")
    assert sorted(page.locator(".cards h3").all_text_contents()) == sorted(NAMES)
    digits = page.locator(".cards > li", has=page.locator("h3 a:text-is('digits')"))
    assert digits.locator(".variants a").all_text_contents() == ["copied"]
    page.click(f"text={LADDER}")
    page.wait_for_selector(f"h1:text-is('{LADDER}')")
    assert page.title() == f"{LADDER} · wordnet-splits"
    assert page.evaluate("document.activeElement.tagName") == "H1"
    counts = [row for row in load_manifest(LADDER).groups if row.split == "classes"]
    assert reader.column(0) == [row.group for row in counts]
    assert [cell.split(" ")[0] for cell in reader.column(3)] == [str(row.actual) for row in counts]


def test_a_class_is_found_by_name_synset_and_wnid(reader: Reader) -> None:
    page = reader.opens("")
    page.fill("input", "maple")
    page.press("input", "Enter")
    page.wait_for_selector(".found li")
    assert page.locator(".found h2").all_text_contents() == ["maple_tree"]
    page.fill("input", "n13741573")  # 1 of WordNet's digits
    page.fill("input", "cipher")  # a word for zero, of digits and of SVHN
    assert page.locator(".found h2").all_text_contents() == ["zero", "zero"]
    assert page.evaluate("location.hash") == "#/search?q=cipher"
    page.wait_for_selector("#said:text-is('2 classes found')", state="attached")
    page.fill("input", "no such thing")
    assert page.locator(".found li").count() == 0


def test_the_tree_opens_by_keyboard_and_leads_to_a_class(reader: Reader) -> None:
    page = reader.opens(f"benchmark/{LADDER}")
    tree = page.locator("[role=tree]")
    tree.focus()
    tree.press("Home")
    assert reader.active().startswith("▾entity")
    before = page.locator("[role=treeitem]").count()
    tree.press("ArrowLeft")
    assert page.locator("[role=treeitem]").count() == 1
    assert page.locator("[role=treeitem]").get_attribute("aria-expanded") == "false"
    tree.press("ArrowRight")
    assert page.locator("[role=treeitem]").count() == before
    tree.press("ArrowRight")
    level = page.locator("[role=treeitem][aria-selected=true]").get_attribute("aria-level")
    assert level == "2"
    page.click("text=Expand all")
    tree.focus()
    tree.press("End")
    assert tree.evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 1")
    assert page.locator("[role=treeitem]").count() < 60  # those in sight, of more than a hundred
    page.fill("input", "maple")
    shown = page.locator(".note >> text=classes shown").text_content()
    assert shown == "1 of 100 classes shown"
    tree.focus()
    tree.press("End")
    tree.press("Enter")
    page.wait_for_selector("h1:text-is('maple_tree')")
    page.go_back()
    page.wait_for_selector("[role=tree]")
    assert page.input_value("input") == "maple"


@pytest.mark.docs
def test_every_class_has_its_row_and_roles_can_be_left_out(reader: Reader) -> None:
    page = reader.opens(f"benchmark/{LADDER}")
    page.click("text=Expand all")
    found: set[str] = set()
    tree = page.locator("[role=tree]")
    for _ in range(20):  # one screen after another
        found |= set(page.locator("[role=treeitem] a").all_text_contents())
        tree.evaluate("box => (box.scrollTop += box.clientHeight - 64)")
        page.evaluate("() => new Promise(requestAnimationFrame)")
    assert found == set(load_manifest(LADDER).classes["name"].to_pylist())
    page.click("button:has-text('near')")
    page.click("button:has-text('far')")
    assert page.locator(".note >> text=classes shown").text_content() == "40 of 100 classes shown"
    assert page.evaluate("location.hash") == f"#/benchmark/{LADDER}?roles=id"
    page = reader.opens(f"benchmark/{LADDER}?q=aquarium")  # a class, and above others
    links = page.locator("[role=treeitem] a")
    assert {"aquarium_fish", "flatfish"} < set(links.all_text_contents())
    page.click("button:has-text('ID 40')")
    assert "flatfish" in links.all_text_contents()
    assert "aquarium_fish" not in links.all_text_contents()


def test_a_class_is_shown_with_its_evidence_and_way(reader: Reader, site: Path) -> None:
    classes = read(site, f"benchmark/{LADDER}")["classes"]
    at = classes["name"].index("wolf")
    page = reader.opens(f"class/{LADDER}/cifar100/wolf")
    assert page.locator("blockquote").text_content() == classes["evidence"][at]
    caption = page.locator("figcaption").text_content()
    assert caption.startswith(f"{classes['distance'][at]} edge")
    assert caption.count("›") == classes["distance"][at] == page.locator("figure .edge").count()
    assert reader.column(1)[0] == str(classes["distance"][at])
    page.click("section .lead a")
    page.wait_for_selector(f"h1:text-is('{classes['nearest_id'][at]}')")


def test_the_leaderboard_sorts_filters_and_says_how_to_repeat(reader: Reader, site: Path) -> None:
    data = read(site, "leaderboard")
    page = reader.opens("leaderboard?metric=fpr95_id_positive")
    assert "Lower is better" in page.locator("main").text_content()
    page.get_by_label("Benchmark", exact=True).select_option("rungs-cifar100")
    page.get_by_label("Detector", exact=True).select_option("energy")
    entries = [entry["benchmark"] for entry in data["entries"]]
    wanted = {"metric": "fpr95_id_positive", "detector": "energy"}
    values = sorted(
        row["value"]
        for row in rows(data["rows"])
        if wanted.items() <= row.items() and entries[row["entry"]] == "rungs-cifar100"
    )
    assert [cell.split(" ")[0] for cell in reader.column(3)] == [f"{value:.4f}" for value in values]
    head = page.locator("th", has_text="Value")
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert [cell.split(" ")[0] for cell in reader.column(3)] == [f"{v:.4f}" for v in reversed(values)]
    page.locator("td button").first.press("Enter")
    told = page.locator(".below").text_content()
    entry = data["entries"][entries.index("rungs-cifar100")]
    assert entry["images"] in told
    assert all(command in told for command in entry["commands"])
    page.get_by_label("Metric").select_option("auroc")
    page.wait_for_selector("text=Higher is better")
    assert page.get_by_label("Detector", exact=True).input_value() == "energy"


@pytest.mark.docs
def test_the_leaderboard_opens_on_the_field_s_table_of_one_benchmark(reader: Reader, site: Path) -> None:
    page = reader.opens("leaderboard")
    assert page.get_by_label("Benchmark", exact=True).input_value() == LADDER
    heads = page.locator("main th").all_text_contents()
    assert heads[:7] == [
        "Detector",
        "Model",
        "ID accuracy",
        "Near AUROC",
        "Near FPR95",
        "Far AUROC",
        "Far FPR95",
    ]
    wanted = {"metric": "auroc", "role": "near", "group": "(mean)"}
    found = [row for row in rows(read(site, "leaderboard")["rows"]) if wanted.items() <= row.items()]
    found.sort(key=lambda row: -row["value"])
    texts = [f"{100 * r['value']:.2f}[{100 * r['lo']:.2f}, {100 * r['hi']:.2f}]" for r in found]
    assert reader.column(3) == texts
    page.locator("th button", has_text="Near FPR95").press("Enter")
    values = [float(cell.partition("[")[0]) for cell in reader.column(4)]
    assert values == sorted(values)
    page.click("text=Every metric and set")
    page.wait_for_selector("text=Higher is better")
    page.get_by_label("Metric").select_option("nearness_trend")
    page.wait_for_selector("text=Neither end is better")
    trends = [float(cell.replace("−", "-").split(" ")[0]) for cell in reader.column(3)]
    assert trends == sorted(trends)
    page.get_by_label("Metric").select_option("gamma")
    page.wait_for_selector("text=Mean of gamma+")
    gammas = [float(cell.split(" ")[0]) for cell in reader.column(3)]
    assert gammas == sorted(gammas, reverse=True)


@pytest.mark.docs
def test_noise_is_no_part_of_the_first_table_and_outliers_have_a_chip(browser: Any, tmp_path: Path) -> None:
    for name in ("kim", "all"):
        entry = f"unknown-cifar-tinyval-{name}"
        shutil.copytree(RESULTS / entry, tmp_path / "results" / entry)
    folder = tmp_path / "results" / "unknown-cifar-tinyval-kim"
    about, content = (json.loads((folder / name).read_text("utf-8")) for name in ("about.json", "entry.json"))
    about.pop("checksum")
    content.pop("checksum")
    about["about"]["notes"].append("clip: dtd: the negative words are names of 3 of the 47 classes")
    write_sealed(folder / "about.json", about)
    content["facts"]["about"] = hashlib.sha256((folder / "about.json").read_bytes()).hexdigest()
    write_sealed(folder / "entry.json", {**content, "outliers": "TIN-597"})
    arguments = [
        "site",
        "unknown-cifar-tinyval",
        "--results",
        tmp_path / "results",
        "--out",
        tmp_path / "pages",
    ]
    assert run(app, [str(argument) for argument in arguments], "wordnet-splits") == 0
    data = read(tmp_path / "pages", "leaderboard")
    reader = Reader(browser, tmp_path / "pages")
    page = reader.opens("leaderboard")
    table = page.locator("table").text_content()
    assert "gaussian" not in table
    wanted = {"metric": "auroc", "group": "dtd"}
    values = {f"{100 * r['value']:.2f}" for r in rows(data["rows"]) if wanted.items() <= r.items()}
    assert {re.match(r"[\d.]{5}", cell).group() for cell in reader.column(5)} <= values
    lacks = {
        tuple(part["group"] for part in rows(entry["sets"]) if part["scored"] != part["expected"])
        for entry in data["entries"]
    }
    assert page.locator("caption").count() == len(lacks)
    assert page.locator("main").text_content().count("Entries that lack sets") == 1
    assert "Noise (gaussian) is not part of these means" in page.locator("main").text_content()
    learning = set(data["fitted_on_outliers"])
    for detector, model in zip(reader.column(0), reader.column(1), strict=True):
        name = re.match(r"\w+?(?=outliers|\[|$)", detector).group()
        assert ("outliers" in detector) == (name in learning)
        assert ("outliers: TIN-597" in model) == model.startswith("kim-cifar-resnet20outliers")
    assert page.locator("td .chip").count() == sum(
        mark in cell for n in (0, 1) for cell in reader.column(n) for mark in ("outliers", "told names")
    )
    assert any("TIN-597" in cell for cell in reader.column(1))
    for cell in reader.column(1):
        assert ("told names: clip: dtd: " in cell) == ("TIN-597" in cell)
    reader.close()


@pytest.mark.docs
def test_two_benchmarks_are_compared_class_by_class(reader: Reader) -> None:
    page = reader.opens("diff/digits/copied")
    assert "same role" in page.locator("main").text_content()
    page = reader.opens(f"diff/digits/{LADDER}")
    assert "112 classes differ." in page.locator("main").text_content()
    page.get_by_label("What differs").select_option("a")
    assert len(reader.column(0)) == 12
    page.get_by_label("First").select_option("copied")
    page.wait_for_selector(f"h1:text-is('copied and {LADDER}')")


def test_imagenet21k_moves_its_threshold(reader: Reader) -> None:
    page = reader.opens("imagenet21k")

    def counts() -> list[int]:
        told = page.locator(".counts p").text_content()
        return [int(n.replace(",", "")) for n in re.findall(r"[\d,]+(?= (?:known|near|far|above))", told)]

    before = counts()
    page.locator("[type=range]").fill("0.6")
    after = counts()
    assert sum(before) == sum(after)
    assert before[0] == after[0] == 1000
    assert before[1] > after[1]
    page.click("text=Expand all")
    assert page.locator("[role=treeitem]").count() < 60


def test_names_are_text_wherever_they_come_from(reader: Reader) -> None:
    page = reader.opens("")
    assert page.locator(".cards p").all_text_contents().count(HOSTILE) == 1
    for route in ("search?q=%3Cimg", "benchmark/copied?q=%3Cimg", "class/copied/digits/3"):
        page = reader.opens(route)
        assert HOSTILE in page.locator("main").text_content()
        assert page.locator("img:not([role])").count() == 0


@pytest.mark.docs
@pytest.mark.parametrize("width", cases([360, 1200], always=360))
def test_every_page_fits_its_window_and_has_one_heading(browser: Any, site: Path, width: int) -> None:
    reader = Reader(browser, site, viewport={"width": width, "height": 700})
    titles = set()
    for route in (*ROUTES, f"benchmark/{LADDER}", "class/digits/digits/7"):
        page = reader.opens(route)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, route
        assert page.locator("h1").count() == 1
        if width < 640:
            assert page.evaluate(
                "[...document.querySelectorAll('.wide')].every(b => b.scrollWidth <= b.clientWidth)"
            ), route
        assert page.locator("main button:visible, main a:visible").count() > 0
        titles.add(page.title())
    assert len(titles) == len(ROUTES) + 2
    reader.close()


CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const isClear = (colour) => (channels(colour)[3] ?? 1) < 1;
  const contrast = (one) => {
    let ground = one;
    while (isClear(getComputedStyle(ground).backgroundColor) && ground !== document.body) {
      ground = ground.parentElement;
    }
    const below = channels(getComputedStyle(ground).backgroundColor);
    const ink = channels(getComputedStyle(one).color);
    let opacity = 1;
    for (let up = one; up; up = up.parentElement) opacity *= Number(getComputedStyle(up).opacity);
    const mixed = ink.map((x, at) => opacity * x + (1 - opacity) * below[at]);
    const [a, b] = [light(mixed), light(below)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const every = [...document.querySelectorAll("main *, header *")];
  const texts = every.filter((one) => one.checkVisibility() && hasText(one));
  const told = texts.map((one) => [contrast(one), one.className, one.textContent.slice(0, 30)]);
  return told.sort((x, y) => x[0] - y[0])[0];
}"""


@pytest.mark.docs
@pytest.mark.parametrize("scheme", cases(["light", "dark"], always="dark"))
def test_text_stands_out_from_its_ground(browser: Any, site: Path, scheme: str) -> None:
    reader = Reader(browser, site, color_scheme=scheme)
    for route in ("", f"benchmark/{LADDER}", "class/digits/digits/7", "imagenet21k", "audit"):
        page = reader.opens(route)
        worst = page.evaluate(CONTRAST)
        assert worst[0] >= 4.5, (route, worst)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    reader.close()


def test_the_skip_link_and_the_toggles_are_first_by_keyboard(reader: Reader) -> None:
    page = reader.opens(f"benchmark/{LADDER}")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MAIN"
    assert LADDER in page.evaluate("location.hash")


@pytest.mark.sampled("docs", one_in=5)
@pytest.mark.parametrize(
    "route", ["nothing", "benchmark/none", "class/digits/digits/77", "benchmark/%2e%2e%2findex", "%E0%A4%A"]
)
def test_an_address_of_nothing_says_so(reader: Reader, route: str) -> None:
    page = reader.opens(route)
    assert page.title() == "Not found · wordnet-splits"
    assert page.locator("main a").get_attribute("href") == "#/"
