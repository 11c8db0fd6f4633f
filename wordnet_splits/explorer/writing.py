"""Writing of the explorer: the files of the pages, and a file of data for each page."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, OutputError, SplitsError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import manifest_names, shipped_folder
from wordnet_splits.benchmark.manifest.parts import manifest_files
from wordnet_splits.benchmark.recipe import FLAGSHIPS, is_shipped, load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.explorer.benchmark_pages import ROLES, benchmark_page, index_entry, search_page
from wordnet_splits.explorer.columns import SynsetNumbers, reduced_tree, rounded, to_columns
from wordnet_splits.explorer.leaderboard_page import leaderboard_page
from wordnet_splits.explorer.sample_images import IMAGES_PER_CLASS, Samples, check_roots, write_samples
from wordnet_splits.studies.distances import distance
from wordnet_splits.studies.fidelity import fidelity_rows
from wordnet_splits.wordnet.taxonomy import load

INDEX: Final = "data/index.js"
"""File that marks a folder as a site."""
DOWNLOADS: Final = "download"


@dataclass(frozen=True)
class Site(Jsonable):
    """A written site; ``pages`` : pages other than benchmarks, such as ``distances``.

    ``withheld`` : a sentence for each source whose images were requested but are not shown.
    """

    out: Path
    benchmarks: tuple[str, ...]
    pages: tuple[str, ...]
    files: int
    bytes: int
    withheld: tuple[str, ...] = ()


def make_site(
    out: str | Path,
    benchmarks: Sequence[str | Path] = (),
    *,
    manifests: Path | None = None,
    results: Path | None = None,
    audit: Path | None = None,
    roots: Roots | None = None,
    images: int | None = None,
    progress: Progress | None = None,
) -> Site:
    """Write the explorer into a folder, which is replaced.

    A site of named benchmarks has only what concerns them: no audit of published lists (unless ``audit``
    is given), no fidelity to papers, no ImageNet-21K, and a leaderboard only if there are entries. Its class
    pages show in how many readings of the rules the role holds (`robust_roles`, without another WordNet).

    Parameters
    ----------
    out : the folder; new, or an earlier site.
    benchmarks : names or folders; by default all frozen benchmarks.
    manifests : folder of manifests, else the usual ones.
    results : folder of leaderboard entries; by default ``manifests/results`` of a checkout, if there.
    audit : the table of ``make audit``; by default ``docs/audit.parquet`` of a checkout, if there.
    roots : folders of sources, for sample images of classes.
    images : largest number of sample images of a class, 0 for none; by default 4 if ``roots`` are given.

    Raises
    ------
    UnknownNameError : an unknown benchmark. ManifestError, DataError : an input is damaged.
    OutputError : the folder has other contents, is the working folder, or cannot be written.
    SplitsError : a benchmark is given twice, or a root is of a source that no benchmark has.
    SourceError : a root is of another source, or an image is absent or altered.
    """
    progress = progress or Silent()
    target = Path(out)
    _check_folder(target)
    with files.locked(target, busy="another site is being written here"):
        files.restore(target)
        if target.exists() and not (target / INDEX).is_file() and any(target.iterdir()):
            raise OutputError("must be empty or a site", where=str(target), hint="give another --out")
        with files.replacing_folder(target) as folder:
            _copy_assets(folder)
            loaded = [load_manifest(name, manifests) for name in benchmarks or manifest_names(manifests)]
            for name, count in Counter(manifest.name for manifest in loaded).items():
                if count > 1:
                    raise SplitsError("a benchmark is given twice", where=name, hint="give each once")
            check_roots(roots, loaded)
            per_class = (IMAGES_PER_CLASS if roots else 0) if images is None else images
            synsets = SynsetNumbers(taxonomy_of(loaded[0]) if loaded else load())
            index: list[dict[str, Any]] = []
            withheld: dict[str, None] = {}  # in order, without repetition
            with progress.task("benchmarks", total=len(loaded)) as task:
                for manifest in loaded:
                    samples = write_samples(manifest, folder, roots, per_class) if per_class else Samples()
                    withheld.update(dict.fromkeys(samples.withheld))
                    page = benchmark_page(manifest, synsets, samples, read=bool(benchmarks))
                    _write(folder, f"benchmark/{manifest.name}", page)
                    index.append({**index_entry(manifest), "download": write_download(manifest, folder)})
                    task.advance()
            _write(folder, "search", search_page(loaded, synsets))
            pages = dict(_other_pages(loaded, synsets, results, audit, named=bool(benchmarks)))
            with progress.task("pages", total=len(pages)) as task:
                for name, make_page in pages.items():
                    _write(folder, name, make_page())
                    task.advance()
            _write(folder, "synsets", synsets.table())
            index.sort(key=lambda entry: entry["name"] not in FLAGSHIPS)
            about = {"version": version("wordnet-splits"), "roles": ROLES, "benchmarks": index}
            _write(folder, "index", {**about, "has": list(pages)})
            paths = [path for path in folder.rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in paths)
    return Site(target, tuple(m.name for m in loaded), tuple(pages), len(paths), size, tuple(withheld))


def _check_folder(target: Path) -> None:
    """Raise OutputError for a file, and for a folder that contains the working folder."""
    if target.exists() and not target.is_dir():
        raise OutputError("is not a folder", where=str(target), hint="give another --out")
    if Path.cwd().is_relative_to(target.resolve()):
        message = "must not be or contain the working folder, because a site replaces its folder"
        raise OutputError(message, where=str(target), hint="give another --out, such as pages")


Pages = Iterator[tuple[str, Callable[[], Any]]]


def _other_pages(
    loaded: Sequence[Manifest],
    synsets: SynsetNumbers,
    results: Path | None,
    audit: Path | None,
    *,
    named: bool,
) -> Pages:
    """Yield the pages other than benchmarks; results and audits, which may be damaged, first.

    ``named`` : yield only pages that concern the named benchmarks or that the user requested.
    """
    checkout = shipped_folder()
    entries = results or checkout / "results"
    if results is not None or (entries.is_dir() and not named):
        yield "leaderboard", lambda: leaderboard_page(entries, loaded)
    elif entries.is_dir() and (page := leaderboard_page(entries, loaded))["entries"]:
        yield "leaderboard", lambda: {**page, "elsewhere": 0}
    audited = audit or checkout.parent / "docs" / "audit.parquet"
    if audit is not None or (audited.is_file() and not named):
        yield "audit", lambda: audit_page(audited)
    yield "distances", lambda: distances_page(loaded)
    if not named:
        yield "fidelity", fidelity_page
        yield "imagenet21k", lambda: imagenet21k_page(synsets)


def write_download(manifest: Manifest, site: Path) -> dict[str, Any] | None:
    """Write the files of a benchmark as an archive below a site; return its path, bytes and SHA-256.

    The archive depends on the files alone: its entries have no dates. Return None for a benchmark that comes
    with this program.
    """
    if is_shipped(load_recipe(manifest)) or manifest.folder is None:
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in manifest_files(manifest.data):
            entry = zipfile.ZipInfo(f"{manifest.name}/{name}")  # dated 1980-01-01
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (manifest.folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    file = f"{DOWNLOADS}/{manifest.name}.zip"
    (site / DOWNLOADS).mkdir(exist_ok=True)
    (site / file).write_bytes(content)
    return {"file": file, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _copy_assets(folder: Path) -> None:
    """Copy the files of the pages: ``index.html`` to the top, other files into ``assets/``."""
    assets = package_files("wordnet_splits") / "data" / "site"
    (folder / "assets").mkdir()
    for asset in sorted(assets.iterdir(), key=lambda asset: asset.name):
        target = folder if asset.name.endswith(".html") else folder / "assets"
        (target / asset.name).write_bytes(asset.read_bytes())


def _write(folder: Path, key: str, value: Any) -> None:
    """Write data, compressed, as a script that passes it on: a page from a disk may load scripts only."""
    path = folder / "data" / f"{key}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = zlib.compress(text.encode("utf-8", errors="backslashreplace"), 9)  # escapes lone surrogates
    script = f'site.add({json.dumps(key)},"{base64.b64encode(packed).decode("ascii")}");\n'
    path.write_text(script, "utf-8")


MEASURES = ("distance", "mean")
BOX = ("group", "role", "classes", "unmapped", "min", "q1", "median", "q3", "max")
LEAK = ("class_id", "name", "relation", "known", "known_name", "edges", "path", "gloss", "known_gloss")
RELATIONS = ("equal", "below", "above", "namesake")
MEASURED = "Every class by its nearest ID class: in edges, or by the similarity `mean` (greater is nearer)."
AUDITED = (
    "Classes of a list that equal a known class, or are below or above one. A class above it leaks "
    "only if its images show the known class. A namesake has the name of a known class, or is defined by it, "
    "without such a relation."
)


def distances_page(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return quartiles of the nearness of every set to the ID classes, by two measures."""
    rows, conclusions = [], {}
    for manifest in manifests:
        for measure in MEASURES:
            distances = distance(manifest, measure=measure)
            rows += [{"measure": measure, "benchmark": manifest.name, **row} for row in distances.rows()]
            conclusions[manifest.name] = distances.conclusions()[1:]
    return {
        "about": MEASURED,
        "measures": list(MEASURES),
        "rows": to_columns(("measure", "benchmark", *BOX), rows),
        "conclusions": {name: lines for name, lines in conclusions.items() if lines},
    }


def fidelity_page() -> dict[str, Any]:
    """Return every figure of the papers next to ours."""
    return {"rows": to_columns(("paper", "what", "published", "ours", "why"), fidelity_rows().rows())}


def audit_page(path: Path) -> dict[str, Any]:
    """Return the counts of every audited list, and its leaks."""
    table = read_table(path)
    if missing := sorted({"list", "origin", "licence", "against", *LEAK} - set(table.schema.names)):
        raise DataError(f"has no column {missing[0]}", where=str(path), hint="give docs/audit.parquet")
    lists: dict[str, dict[str, Any]] = {}
    leaks = []
    for row in table.to_pylist():
        about = {name: row[name] for name in ("list", "against", "origin", "licence")}
        entry = lists.setdefault(row["list"], {**about, "classes": 0, **dict.fromkeys(RELATIONS, 0)})
        entry["classes"] += 1
        if row["relation"] in RELATIONS:
            entry[row["relation"]] += 1
            leaks.append({**row, "list": list(lists).index(row["list"])})
    for entry in lists.values():
        if entry["classes"] == sum(entry[name] for name in RELATIONS) and entry["licence"] == "none stated":
            entry["classes"] = None  # the licence allows only its leaks to be shown
    return {
        "about": AUDITED,
        "lists": to_columns(("list", "against", "classes", *RELATIONS, "origin", "licence"), lists.values()),
        "leaks": to_columns(("list", *LEAK), leaks),
    }


def imagenet21k_page(synsets: SynsetNumbers) -> dict[str, Any]:
    """Return the tree of ImageNet-21K, each class with its nearest class of ImageNet-1K."""
    synsets = synsets.within(load())
    nearness = thresholds("imagenet21k", "imagenet1k", measure="mean", taxonomy=synsets.taxonomy)
    unknown_classes = {row["class_id"]: row for row in nearness.rows()}
    known_classes = {item.class_id for item in load_catalog("imagenet1k")}
    page: dict[str, list[Any]] = {
        name: [] for name in ("synset", "parent", "mean", "nearest", "kin", "known", "class")
    }
    for wnid, parent in reduced_tree([*unknown_classes, *known_classes], synsets.taxonomy):
        row = unknown_classes.get(wnid)
        page["synset"].append(synsets.number(wnid))
        page["parent"].append(parent)
        page["mean"].append(None if row is None else rounded(row["value"]))
        page["nearest"].append(None if row is None else synsets.number(row["nearest"]))
        page["kin"].append("equal" if wnid in known_classes else "" if row is None else row["relation"] or "")
        page["known"].append(wnid in known_classes)
        page["class"].append(row is not None or wnid in known_classes)
    return dict(page)
