"""The authors' archives of Kim et al. as manifests: ``unknown-cifar-paper``, ``unknown-imagenet-paper``."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.exchange.archives.archive_folders import open_archive
from wordnet_splits.exchange.archives.digest_matching import match_archive
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.exchange.imported import Imported
from wordnet_splits.exchange.lists_as_recipe import own_benchmark
from wordnet_splits.making import BuildOptions


def import_archive(path: Path, out: Path, *, name: str | None, options: BuildOptions) -> Imported:
    """Write recipe, lists and manifest of an unpacked archive; see `import_benchmark`.

    Raises
    ------
    DataError : another folder, a damaged picture, no class of the ID set known, or pictures without an id
        where ``allow_missing`` is not set.
    """
    archive = open_archive(path)
    bench = archive.bench
    matches = match_archive(archive, options.roots, options.progress)
    if matches.left_out and not options.allow_missing:
        hint = "give the roots of the originals, and leave out the rest with --allow-missing"
        raise DataError("; ".join(map(str, matches.left_out)), where=printable(path), hint=hint)
    if not any(entry.role == "id" for entry in [*matches.images, *matches.classes]):
        reason = (
            f"no class of {bench.id_set} is known: no folder bears the name of one, no picture is an original"
        )
        raise DataError(reason, where=printable(path), hint="give the folder of the authors' archive")
    entries = [*dict.fromkeys(matches.classes), *matches.images]
    imported = own_benchmark(
        entries, path, out, name=name or bench.name, roles={}, options=options, like=bench.recipe
    )
    assert imported.build is not None, "there is an ID class"
    unmatched = [ListEntry("", row.folder, text) for row in matches.left_out for text in row.paths]
    return Imported(
        imported.name,
        out / imported.name,
        imported.build.manifest,
        imported.recipe,
        imported.lists,
        unmatched=unmatched,
        problems=[*matches.problems, *imported.build.problems],
        left_out=matches.left_out,
        like=bench.like,
    )
