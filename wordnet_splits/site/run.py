"""Writing the explorer: the pages' own files, and one file of data for each thing that a page loads."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base import files
from wordnet_splits.base.errors import OutputError, SplitsError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.finding import load_manifest, manifest_names
from wordnet_splits.manifest.shipped import shipped_folder
from wordnet_splits.site.benchmarks import about
from wordnet_splits.site.classes import ROLES, benchmark_page, search_page
from wordnet_splits.site.comparisons import audit_page, distances_page, fidelity_page, imagenet21k_page
from wordnet_splits.site.standings import leaderboard_page
from wordnet_splits.site.synsets import Synsets
from wordnet_splits.taxonomy import load

INDEX: Final = "data/index.js"
"""What tells a folder that was written here."""


@dataclass(frozen=True)
class Site:
    """What was written.

    Attributes
    ----------
    pages : the parts beside the benchmarks: ``distances``, ``audit``, ...
    files, size : number of files, and their bytes.
    """

    folder: Path
    benchmarks: tuple[str, ...]
    pages: tuple[str, ...]
    files: int
    size: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``site --json`` prints it."""
        return {
            "out": str(self.folder),
            "benchmarks": list(self.benchmarks),
            "pages": list(self.pages),
            "files": self.files,
            "bytes": self.size,
        }


def make_site(
    out: str | Path,
    benchmarks: Sequence[str | Path] = (),
    *,
    manifests: Path | None = None,
    results: Path | None = None,
    audit: Path | None = None,
    progress: Progress | None = None,
) -> Site:
    """Write the explorer into a folder, which it replaces.

    Parameters
    ----------
    out : the folder; new, or one that was written before.
    benchmarks : names or folders; by default every frozen one.
    manifests : folder of manifests, else the usual ones.
    results : folder of entries of the leaderboard; by default ``manifests/results`` of a checkout, if there.
    audit : what ``make audit`` wrote; by default ``docs/audit.parquet`` of a checkout, if there.

    Raises
    ------
    UnknownNameError : no such benchmark. ManifestError, DataError : what is read does not hold.
    OutputError : the folder holds something else, is the working folder, or cannot be written.
    SplitsError : a benchmark is given twice.
    """
    progress = progress or Silent()
    target = Path(out)
    _check_place(target)
    with files.locked(target, busy="another site is being written here"):
        files.restore(target)
        if target.exists() and not (target / INDEX).is_file() and any(target.iterdir()):
            raise OutputError(
                "holds something else than a site", where=str(target), hint="give another --out"
            )
        with files.replacing_folder(target) as folder:
            _copy_assets(folder)
            loaded = [load_manifest(name, manifests) for name in benchmarks or manifest_names(manifests)]
            _check_once([manifest.name for manifest in loaded])
            pages: list[str] = []
            synsets = Synsets(load())
            index = []
            with progress.task("benchmarks", total=len(loaded)) as task:
                for manifest in loaded:
                    _write(folder, f"benchmark/{manifest.name}", benchmark_page(manifest, synsets))
                    index.append(about(manifest))
                    task.advance()
            _write(folder, "search", search_page(loaded, synsets))
            parts = dict(_parts(loaded, synsets, results, audit))
            with progress.task("pages", total=len(parts)) as task:
                for name, make in parts.items():
                    _write(folder, name, make())
                    pages.append(name)
                    task.advance()
            _write(folder, "synsets", synsets.table())
            told = {"version": version("wordnet-splits"), "roles": ROLES, "benchmarks": index, "has": pages}
            _write(folder, "index", told)
            written = [path for path in folder.rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in written)
    return Site(target, tuple(m.name for m in loaded), tuple(pages), len(written), size)


def _check_place(target: Path) -> None:
    """Refuse a file, and a folder that this process stands in, which cannot be replaced below its feet."""
    if target.exists() and not target.is_dir():
        raise OutputError("is no folder", where=str(target), hint="give another --out")
    if Path.cwd().is_relative_to(target.resolve()):
        what = "is, or holds, the working folder, and a site replaces its folder"
        raise OutputError(what, where=str(target), hint="give another --out, such as pages")


def _check_once(names: Sequence[str]) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise SplitsError("this benchmark is given twice", where=twice[0], hint="give each once")


def _parts(
    loaded: Sequence[Any], synsets: Synsets, results: Path | None, audit: Path | None
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the pages beside the benchmarks; results and audits, which may be refused, first."""
    checkout = shipped_folder()
    entries = results or checkout / "results"
    if results is not None or entries.is_dir():
        yield "leaderboard", lambda: leaderboard_page(entries)
    audited = audit or checkout.parent / "docs" / "audit.parquet"
    if audit is not None or audited.is_file():
        yield "audit", lambda: audit_page(audited)
    yield "distances", lambda: distances_page(loaded)
    yield "fidelity", fidelity_page
    yield "imagenet21k", lambda: imagenet21k_page(synsets)


def _copy_assets(folder: Path) -> None:
    """Copy the pages' own files: ``index.html`` to the top, the others into ``assets/``."""
    assets = package_files("wordnet_splits") / "data" / "site"
    (folder / "assets").mkdir()
    for asset in sorted(assets.iterdir(), key=lambda one: one.name):
        place = folder if asset.name.endswith(".html") else folder / "assets"
        with asset.open("rb") as read, (place / asset.name).open("wb") as write:
            shutil.copyfileobj(read, write)


def _write(folder: Path, key: str, value: Any) -> None:
    """Write data as a script that hands it on: pages from a disk may load scripts, and nothing else."""
    path = folder / "data" / f"{key}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    script = f"site.add({json.dumps(key)},{text});\n"
    path.write_bytes(script.encode("utf-8", errors="backslashreplace"))  # half a surrogate pair: its escape
