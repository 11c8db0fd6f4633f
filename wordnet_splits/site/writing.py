"""Writing of the explorer: the files of the pages, and a file of data for each page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base import files
from wordnet_splits.base.errors import OutputError, SplitsError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.finding import load_manifest
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.folders import manifest_names, shipped_folder
from wordnet_splits.site.benchmarks import ROLES, benchmark_page, index_entry, search_page
from wordnet_splits.site.comparisons import audit_page, distances_page, fidelity_page, imagenet21k_page
from wordnet_splits.site.leaderboard import leaderboard_page
from wordnet_splits.site.tables import SynsetNumbers
from wordnet_splits.taxonomy import load

INDEX: Final = "data/index.js"
"""File by which a folder is recognised as a site."""


@dataclass(frozen=True)
class Site(Jsonable):
    """A written site.

    Attributes
    ----------
    pages : pages beside those of the benchmarks: ``distances``, ``audit``, ...
    files, bytes : number of files, and their size.
    """

    out: Path
    benchmarks: tuple[str, ...]
    pages: tuple[str, ...]
    files: int
    bytes: int


def make_site(
    out: str | Path,
    benchmarks: Sequence[str | Path] = (),
    *,
    manifests: Path | None = None,
    results: Path | None = None,
    audit: Path | None = None,
    progress: Progress | None = None,
) -> Site:
    """Write the explorer into a folder, which is replaced.

    Parameters
    ----------
    out : the folder; new, or an earlier site.
    benchmarks : names or folders; by default all frozen benchmarks.
    manifests : folder of manifests, else the usual ones.
    results : folder of leaderboard entries; by default ``manifests/results`` of a checkout, if there.
    audit : the table of ``make audit``; by default ``docs/audit.parquet`` of a checkout, if there.

    Raises
    ------
    UnknownNameError : an unknown benchmark. ManifestError, DataError : an input is damaged.
    OutputError : the folder has other contents, is the working folder, or cannot be written.
    SplitsError : a benchmark is given twice.
    """
    progress = progress or Silent()
    target = Path(out)
    _check_folder(target)
    with files.locked(target, busy="another site is being written here"):
        files.restore(target)
        if target.exists() and not (target / INDEX).is_file() and any(target.iterdir()):
            raise OutputError("has other contents than a site", where=str(target), hint="give another --out")
        with files.replacing_folder(target) as folder:
            _copy_assets(folder)
            loaded = [load_manifest(name, manifests) for name in benchmarks or manifest_names(manifests)]
            _check_no_duplicates([manifest.name for manifest in loaded])
            synsets = SynsetNumbers(load())
            index = []
            with progress.task("benchmarks", total=len(loaded)) as task:
                for manifest in loaded:
                    _write(folder, f"benchmark/{manifest.name}", benchmark_page(manifest, synsets))
                    index.append(index_entry(manifest))
                    task.advance()
            _write(folder, "search", search_page(loaded, synsets))
            pages = dict(_pages(loaded, synsets, results, audit))
            with progress.task("pages", total=len(pages)) as task:
                for name, make_page in pages.items():
                    _write(folder, name, make_page())
                    task.advance()
            _write(folder, "synsets", synsets.table())
            about = {"version": version("wordnet-splits"), "roles": ROLES, "benchmarks": index}
            _write(folder, "index", {**about, "has": list(pages)})
            paths = [path for path in folder.rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in paths)
    return Site(target, tuple(m.name for m in loaded), tuple(pages), len(paths), size)


def _check_folder(target: Path) -> None:
    """Raise OutputError for a file, and for a folder that contains the working folder."""
    if target.exists() and not target.is_dir():
        raise OutputError("is not a folder", where=str(target), hint="give another --out")
    if Path.cwd().is_relative_to(target.resolve()):
        message = "is, or contains, the working folder, and a site replaces its folder"
        raise OutputError(message, where=str(target), hint="give another --out, such as pages")


def _check_no_duplicates(names: Sequence[str]) -> None:
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if duplicates:
        raise SplitsError("this benchmark is given twice", where=duplicates[0], hint="give each once")


def _pages(
    loaded: Sequence[Manifest], synsets: SynsetNumbers, results: Path | None, audit: Path | None
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the pages beside the benchmarks; results and audits, which may be damaged, first."""
    checkout = shipped_folder()
    entries = results or checkout / "results"
    if results is not None or entries.is_dir():
        yield "leaderboard", lambda: leaderboard_page(entries, loaded)
    audited = audit or checkout.parent / "docs" / "audit.parquet"
    if audit is not None or audited.is_file():
        yield "audit", lambda: audit_page(audited)
    yield "distances", lambda: distances_page(loaded)
    yield "fidelity", fidelity_page
    yield "imagenet21k", lambda: imagenet21k_page(synsets)


def _copy_assets(folder: Path) -> None:
    """Copy the files of the pages: ``index.html`` to the top, the others into ``assets/``."""
    assets = package_files("wordnet_splits") / "data" / "site"
    (folder / "assets").mkdir()
    for asset in sorted(assets.iterdir(), key=lambda asset: asset.name):
        target = folder if asset.name.endswith(".html") else folder / "assets"
        (target / asset.name).write_bytes(asset.read_bytes())


def _write(folder: Path, key: str, value: Any) -> None:
    """Write data as a script that passes it on: pages from a disk may load scripts, but no other data."""
    path = folder / "data" / f"{key}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    script = f"site.add({json.dumps(key)},{text});\n"
    path.write_bytes(script.encode("utf-8", errors="backslashreplace"))  # escapes lone surrogates
