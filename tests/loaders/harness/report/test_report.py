"""The page: what it holds, that everything is escaped, and that it works in a real browser, alone."""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import re
import shlex
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from loaders import UnknownDetectionSet, evaluate
from loaders.harness import plot, report
from loaders.harness.cli.main import app
from loaders.harness.comparison.entries import draws_of
from loaders.harness.detectors import parse_detectors
from loaders.harness.evaluation.provenance import command_line
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.models.origin import WeightsOrigin
from loaders.harness.models.transforms import evaluation_transform, to_uint8
from loaders.harness.report.mistakes import with_thumbnails, worst_mistakes
from loaders.harness.report.page import column_kinds, inline_svg, sort_key, with_values
from loaders.harness.report.plots.selection import Selection
from loaders.harness.report.write_report import _best_entries
from loaders.harness.results.metadata import MissingSet
from loaders.harness.results.results import Results
from loaders.harness.results.table import Table
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.loaders.harness.long_tables import long_predictions, long_scores
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources import source_info
from wordnet_splits.hub.attribution import cite_benchmark
from wordnet_splits.wordnet.similarity import compare_synsets

HOSTILE_NAME = "<script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>"
HOSTILE = f"{HOSTILE_NAME}\x1b[31m"
"""Names with control characters are refused where they are given; other texts may hold them."""


@pytest.fixture(scope="module")
def digits() -> Results:
    manifest = load_manifest("digits")
    return evaluate_runs(
        manifest, [fake_run(manifest, seed, splits=("train", "test")) for seed in (0, 1)], "mcp,knn[k=10]"
    )


@pytest.fixture(scope="module")
def page(digits: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    digits.write(folder / "results")
    return report(folder / "results", folder / "report.html", mistakes=3)


def test_the_ranking_of_a_page_is_over_the_level_asked_for(digits: Results, tmp_path: Path) -> None:
    of_levels = {
        over: report(digits, tmp_path / "page.html", bootstrap=20, over=over, mistakes=0).read_text()
        for over in ("images", "classes", "subtrees")
    }
    assert [mentions(unescape(text), "over", over) for over, text in of_levels.items()] == [True] * 3
    assert len({*of_levels.values()}) == 3
    options = {"bootstrap": 20, "over": "classes", "best": 1, "mistakes": 0}
    assert report(digits, tmp_path / "best.html", **options).exists()
    for wrong, where in (({"over": "class"}, "--over"), ({"over": "classes", "bootstrap": 0}, "--over")):
        with raises(SplitsError, where=where):
            report(digits, tmp_path / "page.html", **{"bootstrap": 5, **wrong})


class Elements(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_names_what_was_run_and_how_to_repeat_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    about = load_manifest("digits")
    assert mentions(text, about.fingerprint)
    for heading in (
        "Networks, sets, detectors and software",
        "Results",
        "Comparison",
        "Plots",
        "Reproduction",
    ):
        assert f">{heading}</h2>" in text
    assert "Unknowns taken for known: " in text
    assert mentions(text, "digits")
    commands = [unescape(code) for code in re.findall(r"<pre><code>(.*?)</code>", text)]
    assert commands[1] == f"unknown-eval recompute --check {page.parent / 'results'}"
    words = shlex.split(commands[0])
    models = ["--model", "fake-0", "--model", "fake-1", "--runs"]
    assert words[:9] == ["unknown-eval", "run", "--benchmark", "digits", *models]
    said = parse_detectors(words[words.index("--detectors") + 1], benchmark="digits")
    assert [one.label for one in said] == ["mcp", "knn[k=10]"]


def texts_of(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", page.read_text("utf-8").partition("<main>")[2]))


def test_the_page_says_where_its_numbers_come_from(page: Path, digits: Results) -> None:
    text = texts_of(page)
    manifest = load_manifest("digits")
    for part in (
        platform.python_version(),
        version("wordnet-splits"),
        digits.about.software["date"],
        digits.about.evaluation_fingerprint,
        manifest.fingerprint,
        source_info("digits").licence,
        cite_benchmark("digits").bibtex.strip(),
        "Every ID, near and far image was scored.",
    ):
        assert str(part) in text, part
    assert "torch" not in digits.about.software  # nothing ran here: arrays


def test_older_results_say_that_nothing_was_recorded(digits: Results, tmp_path: Path) -> None:
    missing = MissingSet(group="uniform", role="far", scored=3, expected=500, status="awaiting svhn")
    about = digits.about.model_copy(update={"software": {}, "missing": (missing,)})
    text = texts_of(report(replace(digits, about=about), tmp_path / "a.html", mistakes=0))
    assert "not recorded: evaluated before results kept it" in text
    assert mentions(text, "uniform", "far", "3", "500")


def scaled(image: Image.Image) -> torch.Tensor:
    return to_uint8(image) / 255


ORIGINS = {
    "python": (WeightsOrigin(kind="python"), "--model fake-0"),
    "published": (WeightsOrigin(kind="published", spec="timm:resnet18"), "--model timm:resnet18"),
    "file": (
        WeightsOrigin(kind="file", spec="timm:resnet18", weights="/home/me/a.pth"),
        "--model timm:resnet18 --weights WEIGHTS/a.pth",
    ),
    "named": (
        WeightsOrigin(kind="named", spec="torchvision:resnet18", weights="V1"),
        "--model torchvision:resnet18 --weights V1",
    ),
    "model": (WeightsOrigin(kind="model", spec="net.onnx"), "--model net.onnx --model-id fake"),
    "unnamed": (WeightsOrigin(kind="model", spec="fake"), "--model fake"),
    "arrays": (WeightsOrigin(kind="arrays"), "--arrays DIR --model-id fake"),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_commands_name_the_network_and_roots_in_capitals(digits: Results, origin: str) -> None:
    weights, words = ORIGINS[origin]
    runs = tuple(run.model_copy(update={"weights": weights}) for run in digits.about.runs[:1])
    about = digits.about.model_copy(update={"benchmark": "rungs-cifar100", "runs": runs})
    command = command_line(about, load_manifest("rungs-cifar100"), {"mean": "-1,0,1", "std": "1"})
    assert f"--benchmark rungs-cifar100 {words} " in command
    if origin != "arrays":
        assert "--root cifar100=CIFAR100_ROOT --mean=-1,0,1 --std 1 --detectors" in command
    assert "/home/me" not in command
    assert "--root" not in command_line(digits.about, load_manifest("digits"), {})  # digits need no folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mean": 0, "std": 1}, " --mean 0 --std 1 "),
        ({"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.5, 1)}, " --mean 0.5 --std 0.25,0.5,1 "),
        ({"mean": 0, "std": 1, "transform": "resize-16"}, " --transform resize-16 --mean 0 --std 1 "),
        ({"transform": evaluation_transform("resize-16")}, " --transform resize-16 --mean 0 --std 1 "),
        ({"transform": scaled, "transform_id": "mine:bigger 0123456789ab"}, " --transform mine:bigger "),
        ({"transform": scaled, "transform_id": "of this call"}, "Sequential --detectors "),
    ],
)
def test_the_recorded_command_names_a_given_transform(options: dict[str, Any], words: str) -> None:
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(6))
    network(torch.zeros(2, 3, 16 if "resize-16" in words else 8, 16 if "resize-16" in words else 8))
    about = evaluate(network, "digits", "msp", groups=["uniform"], **options).about
    assert words in about.command


def test_the_best_models_alone_are_plotted_and_the_page_says_so(tmp_path: Path) -> None:
    sets = [("known", "id", "test", 60), ("near-a", "near", "test", 40), ("far-a", "far", "test", 40)]
    manifest = fake_manifest(sets, name="digits")
    runs = [fake_run(manifest, seed, model=f"model-{seed}") for seed in range(4)]
    held = evaluate_runs(manifest, runs, "mcp,energy")
    text = report(held, tmp_path / "a.html", best=3, mistakes=0).read_text("utf-8")
    assert "The 3 best of 4 models by aurc_unknown on pooled." in text
    assert "The 6 best of" not in text
    assert text.count("<figure") >= 5
    whole = report(held, tmp_path / "b.html", mistakes=0).read_text("utf-8")
    assert "best of 4 models" not in whole
    assert mentions(whole, "8")
    assert all(f"model-{n}" in texts_of(tmp_path / "a.html") for n in range(4))  # in the tables
    assert run(app, ["report", "nowhere", "--best", "0"], "unknown-eval") == 2


def test_nothing_is_loaded_and_only_the_page_s_own_style_and_script_may_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    seen = Elements(text)
    (policy,) = [a["content"] for tag, a in seen.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    for tag, attributes in seen.found:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/png;base64,")), (tag, value)
    ids = [a["id"] for _, a in seen.found if "id" in a]
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert targets <= set(ids)


def test_equal_results_give_equal_pages(page: Path, tmp_path: Path) -> None:
    again = report(page.parent / "results", tmp_path / "again.html", mistakes=3)
    assert again.read_bytes() == page.read_bytes()


def test_hostile_names_are_text(tmp_path: Path) -> None:
    sets = [("known", "id", "test", 30), ("near-a", "near", "test", 20), ("far-a", "far", "test", 20)]
    manifest = fake_manifest(sets, name="digits")
    runs = [fake_run(manifest, seed, model=HOSTILE_NAME + seed * "$") for seed in (0, 1)]
    held = evaluate_runs(manifest, runs, "mcp,energy")
    notes = held.about.model_copy(update={"notes": (HOSTILE,), "left_out": (HOSTILE,)})
    text = report(replace(held, about=notes), tmp_path / "a.html").read_text(encoding="utf-8")
    seen = Elements(text)
    assert sum(tag == "script" for tag, _ in seen.found) == 1
    assert not [a for tag, a in seen.found if tag == "img" and a.get("src") == "x"]
    assert "\x1b" not in text
    assert "&lt;script&gt;window.hacked=1" in text


def test_worst_mistakes_are_the_surest(digits: Results) -> None:
    manifest = load_manifest("digits")
    (draw,) = draws_of([digits], ["mcp"])
    found = worst_mistakes(draw.entries[0], manifest, 4)
    scores = long_scores(digits).to_pandas()
    scores = scores[(scores.detector == "mcp") & (scores.run == 0)]
    scores["confidence"] = np.exp(scores["confidence"])  # MSP, shown as a probability
    outside = scores[scores.group != "digits-0-5"].sort_values("confidence", ascending=False)
    unknown = [one for one in found if one.kind == "unknown"]
    assert [one.confidence for one in unknown] == pytest.approx(outside.confidence.head(4).tolist())
    assert {one.score_name for one in found} == {"probability"}
    said = long_predictions(digits).to_pandas()
    said = said[(said.run == 0) & (said.role == "id")].merge(
        scores[["image_id", "group", "source", "confidence"]], on=["image_id", "group", "source"]
    )
    wrong = said[said.label != said.prediction].sort_values("confidence", ascending=False)
    surest = [one for one in found if one.kind == "wrong"]
    assert [one.confidence for one in surest] == pytest.approx(wrong.confidence.head(4).tolist())
    right = said[said.label == said.prediction].confidence
    assert surest[0].share == pytest.approx(np.mean(right < wrong.confidence.max()))
    one = surest[0]
    names = {row["name"]: row["wnids"][0] for row in manifest.classes.to_pylist() if row["wnids"]}
    both = compare_synsets(names[one.true], names[str(one.predicted)])
    assert one.similarity == pytest.approx(both.mean2)
    assert len(one.path) == both.distance + 1
    assert (one.path[0], one.path[-1]) != (one.path[-1], one.path[0])


def test_thumbnails_are_of_those_images(digits: Results) -> None:
    manifest = load_manifest("digits")
    (draw,) = draws_of([digits], ["mcp"])
    found, notes = with_thumbnails(worst_mistakes(draw.entries[0], manifest, 2), manifest)
    assert notes == []
    for one in found:
        assert one.thumbnail is not None
        shown = Image.open(io.BytesIO(base64.b64decode(one.thumbnail.partition(",")[2])))
        images = UnknownDetectionSet("digits", group=one.group)
        place = images.table["image_id"].to_pylist().index(one.image_id)
        assert np.array_equal(np.asarray(shown), np.asarray(images[place][0]))


def test_images_that_are_not_at_hand_are_said(no_roots_of_this_machine: None) -> None:
    (folder,) = (Path(__file__).resolve().parents[4] / "manifests" / "results").glob("unknown-cifar-*dropout")
    (draw,) = draws_of([folder], ["mcp"])
    manifest = load_manifest(draw.benchmark)
    found, notes = with_thumbnails(worst_mistakes(draw.entries[0], manifest, 1), manifest)
    assert any(one.thumbnail is None for one in found)
    assert notes[0].startswith("No images of cifar-")


def test_pictures_lose_their_styles_and_keep_their_look(digits: Results, tmp_path: Path) -> None:
    svg = plot(digits, "roc", tmp_path / "a.svg").read_text(encoding="utf-8")
    made = inline_svg(svg, "x7-", "a label")
    root = ElementTree.fromstring(made)
    assert root.get("aria-label") == "a label"
    every = list(root.iter())
    assert not [e for e in every if "style" in e.attrib or e.tag.endswith(("style", "metadata"))]
    strokes = {e.get("stroke") for e in every}
    assert {"#0072b2", "#d55e00"} <= strokes
    assert all(e.get("id", "x7-").startswith("x7-") for e in every)
    assert len(re.findall(r"<path|<use", made)) == len(re.findall(r"<path|<use", svg))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("72.16±0.36", "72.16"),
        ("4,000", "4000"),
        ("-0.5 to 2", "-0.5"),
        ("-", ""),
        ("mcp", ""),
        ("1e-3", "1e-3"),
        ("5e8237821874a", ""),
    ],
)
def test_cells_are_sorted_by_the_number_they_begin_with(text: str, key: str) -> None:
    assert sort_key(text) == key


def test_columns_of_words_are_not_numbers() -> None:
    table = Table("", ("a", "b", "c"), (("x", "1±2", "-"), ("2", "-", "-")))
    assert column_kinds(table) == ["text", "number", "text"]


def test_columns_without_a_value_are_left_out() -> None:
    table = Table("", ("a", "b", "c"), (("x", "-", "1"), ("y", "", "-")), bold=frozenset({(0, 2)}))
    shown = with_values(table)
    assert (shown.columns, shown.cells) == (("a", "c"), (("x", "1"), ("y", "-")))
    assert shown.bold == {(0, 1)}


def test_two_models_have_their_given_names_and_six_screens(browser: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
    folders = [tmp_path / "demo", tmp_path / "mine"]
    for model, folder in zip(("demo:digits", {"my network": network}), folders, strict=True):
        detectors = (
            "msp,energy" if folder.name == "mine" else "msp,energy,entropy,margin,mls,gen,klm,odin,ts,she"
        )
        evaluate(model, "digits", detectors).write(folder)
    path = report(folders, tmp_path / "page.html")
    drawn = _best_entries(Selection.from_results(folders), 3).entries
    assert [(entry.model, entry.detector) for entry in drawn] == [
        *(("demo:digits", "msp"), ("my network", "msp"), ("demo:digits", "energy"))
    ]
    text = unescape(path.read_text("utf-8"))
    commands = [shlex.split(code) for code in re.findall(r"<pre><code>(unknown-eval .*?)</code>", text)]
    assert [words[1] for words in commands] == ["run", "recompute", "recompute"]  # none loads "Sequential"
    for words in commands[1:]:
        assert run(app, words[1:], "unknown-eval") == 0
    assert '<td data-n="" class="text">my network</td>' in text
    headings = re.findall(r"<h2 [^>]*>(.*?)</h2>", text)
    assert headings[:2] == ["Results", "Comparison"]
    page = Opened(browser, path, 1280).page
    assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 800


def test_results_of_two_benchmarks_are_refused(digits: Results, tmp_path: Path) -> None:
    manifest = fake_manifest([("k", "id", "test", 20), ("n", "near", "test", 20)], name="rungs-cifar100")
    other = evaluate_runs(manifest, [fake_run(manifest)], "mcp")
    with raises(DataError, naming="rungs-cifar100"):
        report([digits, other], tmp_path / "a.html")


class Opened:
    """A page in a browser without a network, and everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, width: int) -> None:
        context = browser.new_context(viewport={"width": width, "height": 800}, offline=True)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def column(self, table: int, column: int) -> list[str]:
        rows = "[...document.querySelectorAll('table')[t].tBodies[0].rows]"
        script = f"([t, c]) => {rows}.map(row => row.cells[c].textContent)"
        return list(self.page.evaluate(script, [table, column]))


@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_it_without_network_or_complaint(browser: Any, page: Path, width: int) -> None:
    opened = Opened(browser, page, width)
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [page.as_uri()]
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = opened.page.evaluate(
        "[...document.images].map(i => i.naturalWidth).concat("
        "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height))"
    )
    assert len(sizes) >= 6 + 8
    assert min(sizes) > 0
    colours = opened.page.evaluate(
        "[...new Set([...document.querySelectorAll('svg path')].map(p => getComputedStyle(p).stroke))]"
    )
    assert "rgb(0, 114, 178)" in colours


def test_dark_readers_get_a_dark_page_and_plots_that_stand_out(browser: Any, page: Path) -> None:
    context = browser.new_context(color_scheme="dark", offline=True)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    strokes = shown.evaluate(
        "[...new Set([...document.querySelectorAll('svg path')].map(p => getComputedStyle(p).stroke))]"
    )
    assert "rgb(88, 176, 234)" in strokes
    assert "rgb(0, 114, 178)" not in strokes
    fills = shown.evaluate(
        "[...new Set([...document.querySelectorAll('svg path, svg use')].map(p => getComputedStyle(p).fill))]"
    )
    assert not {"rgb(255, 255, 255)", "rgb(0, 0, 0)", "rgb(32, 32, 32)"} & set(fills)
    context.close()


def test_a_click_sorts_by_number_and_again_the_other_way(browser: Any, page: Path) -> None:
    opened = Opened(browser, page, 1200)
    titles = opened.page.eval_on_selector_all("caption", "all => all.map(c => c.textContent)")
    table = titles.index("Sets of test images that were scored")
    opened.page.click("summary:has-text('Networks, sets, detectors and software')")
    before = opened.column(table, 2)
    head = opened.page.locator("table").nth(table).locator("th button").nth(2)
    head.click()
    ascending = opened.column(table, 2)
    assert ascending == sorted(before, key=lambda cell: float(cell.replace(",", "")))
    assert (
        opened.page.locator("table").nth(table).locator("th").nth(2).get_attribute("aria-sort") == "ascending"
    )
    head.press("Enter")  # from the keyboard
    assert opened.column(table, 2) == sorted(before, key=lambda cell: -float(cell.replace(",", "")))
    opened.page.locator("table").nth(table).locator("th button").nth(0).click()
    assert opened.column(table, 0) == sorted(opened.column(table, 0))


def test_a_browser_runs_nothing_that_names_smuggle_in(browser: Any, tmp_path: Path) -> None:
    sets = [("known", "id", "test", 30), ("near-a", "near", "test", 20)]
    manifest = fake_manifest(sets, name="digits")
    held = evaluate_runs(manifest, [fake_run(manifest, 0, model=HOSTILE_NAME)], "mcp,energy")
    opened = Opened(browser, report(held, tmp_path / "a.html"), 800)
    assert opened.complaints == []
    assert opened.page.evaluate("window.hacked") is None
