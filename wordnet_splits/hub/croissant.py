"""Croissant metadata of a benchmark (MLCommons, with responsible-AI fields)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import json_text
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.carried import FOLDER as SOURCES
from wordnet_splits.benchmark.manifest.carried import carried_files
from wordnet_splits.benchmark.manifest.loading import whole_folder
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA
from wordnet_splits.benchmark.recipe import is_shipped, load_recipe
from wordnet_splits.benchmark.rules.phrases import rule_words
from wordnet_splits.datasets.catalog.own_hierarchy import NODES, TREE
from wordnet_splits.datasets.sources import source_info
from wordnet_splits.hub.attribution import HOME, about_of, cite_benchmark, keywords_of, licence_address
from wordnet_splits.hub.responsible_ai import responsible_ai_of

FILE: Final = "croissant.json"
CONFORMS_TO: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
CONTEXT: Final = {
    "arrayShape": "cr:arrayShape",
    "containedIn": "cr:containedIn",
    "description": {"@container": "@language"},
    "isArray": "cr:isArray",
    "name": {"@container": "@language"},
    "prov": "http://www.w3.org/ns/prov#",
}
"""Additions of version 1.1 to the context of version 1.0, and the namespace of provenance."""

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

FROZEN: Final = "A frozen value never changes under its version"


def croissant_of(
    manifest: Manifest, *, metadata: Mapping[str, Any] | None = None, url: str | None = None
) -> str:
    """Return the text of ``croissant.json``, with addresses relative to the benchmark's folder.

    Every file has its SHA-256. There is a record set of the classes, and one of the images of each part. The
    responsible-AI fields are those of `responsible_ai_of`.

    Parameters
    ----------
    metadata : metadata of the card: ``license`` of the tables, and ``date_published`` (YYYY-MM-DD); they
        take precedence over ``[about]``.
    url : where the benchmark is published; the address in ``[about]`` takes precedence.

    Raises
    ------
    MissingPackageError : mlcroissant is not installed.
    ManifestError : ``[about]`` contradicts the manifest on synthetic data.
    """
    mlc = need("mlcroissant", "hub", where=FILE)
    settings = metadata or {}
    recipe = load_recipe(manifest)
    folder = whole_folder(manifest)
    paths = {"classes": "classes.parquet"}
    paths |= {f"{split}-{group}": f"images/{split}/{group}.parquet" for split, group in manifest.parts}
    prints = manifest.data.fingerprints
    carried = [file.path for file in carried_files(prints)]
    schemas = {name: CLASS_SCHEMA if name == "classes" else IMAGE_SCHEMA for name in paths}
    about = about_of(manifest)
    licence = settings.get("license", about.licence)
    doi = about.doi and f"https://doi.org/{about.doi}"
    creators = [
        mlc.Organization(name=author.name)
        if author.organisation
        else mlc.Person(name=author.full_name, url=author.orcid and f"https://orcid.org/{author.orcid}")
        for author in about.authors
    ]
    datasets = "datasets" if manifest.declarations else "published datasets"
    awaited = ", ".join(manifest.data.awaiting)
    hierarchy = "WordNet"
    if manifest.own_hierarchy is not None:
        hierarchy = f"the hierarchy {taxonomy_of(manifest).title} in {SOURCES}/{TREE} and {SOURCES}/{NODES}"
    organisations = [creator for creator in creators if isinstance(creator, mlc.Organization)]
    croissant = mlc.Metadata(
        ctx=mlc.Context(conforms_to=CONFORMS_TO[0], rdf=mlc.Rdf(context={**mlc.Rdf().context, **CONTEXT})),
        conforms_to=list(CONFORMS_TO),
        creators=creators,
        publisher=organisations or creators,
        name=manifest.name,
        description=_description(manifest),
        version=f"{manifest.version}.0.0",
        license=[licence_address(str(licence))] if licence else None,
        date_published=_date(settings.get("date_published", about.date)),
        url=(url or HOME) if is_shipped(recipe) else about.url or url or doi,
        same_as=[doi] if doi else None,
        cite_as="\n\n".join(entry.bibtex for entry in cite_benchmark(manifest).entries),
        keywords=keywords_of(manifest),
        distribution=[
            *(_file(mlc, name, folder, path) for name, path in paths.items()),
            *(_file(mlc, path.replace("/", "-"), folder, path) for path in carried),
        ],
        record_sets=[_records(mlc, name, schemas[name]) for name in paths],
        data_collection=f"Chosen from {datasets} by rules over {hierarchy}, which the description gives.",
        data_collection_type=None if manifest.declarations else ["Secondary Data Analysis"],
        data_collection_missing_data=f"Image ids of {awaited} are awaited." if awaited else "None.",
        data_annotation_protocol=[
            f"{g.name}: {rule_words(g.classes, g.source, taxonomy_of(manifest).noun)}" for g in recipe.group
        ],
        data_release_maintenance_plan=_maintenance(manifest),
    )
    written = json.loads(json.dumps(croissant.to_json(), default=str))
    return json_text({**written, **responsible_ai_of(manifest)})


def _maintenance(manifest: Manifest) -> str:
    if is_shipped(load_recipe(manifest)):
        return f"{FROZEN}; every change has a changelog line."
    contact = manifest.data.about.contact
    return f"{FROZEN}." + (f" Contact: {contact}" if contact else "")


def _date(value: object) -> datetime | None:
    try:
        return None if value is None else datetime.fromisoformat(str(value))
    except ValueError:
        raise DataError(
            f"date_published: {printable(value)!r} is not an ISO date", where="README.md"
        ) from None


def _description(manifest: Manifest) -> str:
    recipe = load_recipe(manifest)
    licences = (f"{name}: {source_info(name, manifest.datasets).licence}" for name in recipe.sources_named)
    counts = (f"{row.split} {row.group} ({row.role}) {row.actual:,}" for row in manifest.groups if row.actual)
    return (
        f"{recipe.title or manifest.name}. Counts: {'; '.join(counts)}. "
        f"Fingerprint: {manifest.fingerprint or 'none until every source was at hand'}. "
        f"Terms of the sources: {'; '.join(licences)}."
    )


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
