"""Croissant metadata of a benchmark (MLCommons, with responsible-AI fields)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import json_text
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.carried import carried_files
from wordnet_splits.manifest.packaged import whole_folder
from wordnet_splits.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA
from wordnet_splits.publishing.cite import cite_benchmark
from wordnet_splits.recipe import load_recipe
from wordnet_splits.rules.words import rule_words
from wordnet_splits.sources import source_info

FILE: Final = "croissant.json"
HOME: Final = "https://pypi.org/project/wordnet-splits"
MAX_FILE_BYTES: Final = 1 << 40
TYPES: Final = {
    pa.string(): "TEXT",
    pa.int16(): "INTEGER",
    pa.int32(): "INTEGER",
    pa.float64(): "FLOAT",
}
"""Croissant types of columns; it has none for nested evidence and digests."""

FORMATS: Final = {
    ".parquet": "application/x-parquet",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
}

USES: Final = (
    "Evaluation of misclassification, near-OOD, far-OOD and open-set detection by image classifiers.",
    "Not for training on test groups, nor for choosing parameters on them.",
)
BIASES: Final = (
    "Near and far are judged by WordNet's senses and hypernyms, of English nouns, not by how pictures look.",
    "Classes and pictures are those that the publishers of the sources chose, with their biases.",
)
IMPACT: Final = "Classifiers that say what they do not know are safer to use; a good score here is no proof."
MAINTENANCE: Final = "A frozen value never changes under its version; every change has a changelog line."
PERSONAL: Final = ("No pixels and no personal data are here; pictures of the sources may show people.",)


def croissant_of(manifest: Manifest, *, metadata: Mapping[str, Any] | None = None, url: str = HOME) -> str:
    """Return the text of ``croissant.json``, with addresses relative to the benchmark's folder.

    Every file has its SHA-256. There is a record set of the classes, and one of the images of each part.

    Parameters
    ----------
    metadata : of the card: ``license`` of the tables, and ``date_published`` (YYYY-MM-DD).
    url : where the benchmark is published.

    Raises
    ------
    MissingPackageError : mlcroissant is not installed.
    """
    with using_sources(manifest.own):
        return _croissant_of(manifest, metadata or {}, url)


def _croissant_of(manifest: Manifest, settings: Mapping[str, Any], url: str) -> str:
    mlc = need("mlcroissant", "hub", where=FILE)
    recipe = load_recipe(manifest)
    folder = whole_folder(manifest)
    paths = {"classes": "classes.parquet"}
    paths |= {f"{split}-{group}": f"images/{split}/{group}.parquet" for split, group in manifest.parts}
    carried = [file.path for file in carried_files(manifest.data.fingerprints.sources)]
    schemas = {name: CLASS_SCHEMA if name == "classes" else IMAGE_SCHEMA for name in paths}
    croissant = mlc.Metadata(
        name=manifest.name,
        description=_description(manifest),
        version=f"{manifest.version}.0.0",
        license=[str(settings["license"])] if "license" in settings else None,
        date_published=_date(settings.get("date_published")),
        url=url,
        cite_as="\n\n".join(entry.bibtex for entry in cite_benchmark(manifest).entries),
        keywords=["out-of-distribution detection", "open-set recognition", "WordNet", "benchmark"],
        distribution=[
            *(_file(mlc, name, folder, path) for name, path in paths.items()),
            *(_file(mlc, path.replace("/", "-"), folder, path) for path in carried),
        ],
        record_sets=[_records(mlc, name, schemas[name]) for name in paths],
        data_collection="Chosen from published datasets by rules over WordNet, which the description gives.",
        data_collection_type=["Secondary Data Analysis"],
        data_collection_missing_data=_missing(manifest),
        data_annotation_protocol=[f"{g.name}: {rule_words(g.classes)}" for g in recipe.group],
        data_use_cases=list(USES),
        data_biases=list(BIASES),
        data_limitations=list(_limits(manifest)),
        personal_sensitive_information=list(PERSONAL),
        data_social_impact=IMPACT,
        data_release_maintenance_plan=MAINTENANCE,
    )
    return json_text(json.loads(json.dumps(croissant.to_json(), default=str)))


def _date(value: object) -> datetime | None:
    try:
        return None if value is None else datetime.fromisoformat(str(value))
    except ValueError:
        raise DataError(
            f"date_published: {printable(value)!r} is not an ISO date", where="README.md"
        ) from None


def _description(manifest: Manifest) -> str:
    recipe = load_recipe(manifest)
    licences = (f"{name}: {source_info(name).licence}" for name in recipe.sources_named)
    counts = (f"{row.split} {row.group} ({row.role}) {row.actual:,}" for row in manifest.groups if row.actual)
    return (
        f"{recipe.title or manifest.name}. Counts: {'; '.join(counts)}. "
        f"Fingerprint: {manifest.fingerprint or 'none until every source was at hand'}. "
        f"Terms of the sources: {'; '.join(licences)}."
    )


def _missing(manifest: Manifest) -> str:
    awaited = ", ".join(manifest.data.awaiting)
    return f"Image ids of {awaited} are awaited." if awaited else "None."


def _limits(manifest: Manifest) -> Iterator[str]:
    yield "A digest is null where the pixels were not at hand when the table was frozen."
    yield from dict.fromkeys(f"{row.group}: {row.note}" for row in manifest.groups if row.note)
    for leak in manifest.data.leaks:
        reason = f": {leak.reason}" if leak.reason else ""
        yield f"Known {leak.kind} leak of {leak.count:,} between {leak.a} and {leak.b}{reason}"


def _file(mlc: Any, name: str, folder: Path, path: str) -> Any:
    return mlc.FileObject(
        id=path,
        name=name,
        content_url=path,
        content_size=f"{(folder / path).stat().st_size} B",
        encoding_formats=[FORMATS[Path(path).suffix]],
        sha256=sha256_of(folder / path, largest=MAX_FILE_BYTES),
    )


def _records(mlc: Any, name: str, schema: pa.Schema) -> Any:
    path = "classes.parquet" if name == "classes" else "images/" + name.replace("-", "/", 1) + ".parquet"
    fields = [
        mlc.Field(
            id=f"{name}/{column.name}",
            name=column.name,
            data_types=[getattr(mlc.DataType, TYPES[column.type])],
            source=mlc.Source(file_object=path, extract=mlc.Extract(column=column.name)),
        )
        for column in schema
        if column.type in TYPES
    ]
    return mlc.RecordSet(id=name, name=name, fields=fields)
