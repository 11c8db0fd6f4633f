"""The dataset card of a repository: configurations for `datasets`, and a description of each benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wordnet_splits.base.about import About, Author
from wordnet_splits.base.lazy import need
from wordnet_splits.base.tabular import markdown_table, markdown_text
from wordnet_splits.benchmark.checks.freeze import changes_of
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import GroupRow, Manifest
from wordnet_splits.benchmark.manifest.carried import FOLDER as SOURCES
from wordnet_splits.benchmark.pulling import SUMS
from wordnet_splits.benchmark.recipe import load_recipe, recipe_names
from wordnet_splits.benchmark.rules.operators.similarity import bounds_in
from wordnet_splits.benchmark.rules.phrases import rule_words
from wordnet_splits.benchmark.rules.registry import join_names
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.own_hierarchy import NODES, TREE
from wordnet_splits.datasets.sources import source_class, source_info
from wordnet_splits.hub.attribution import cite_benchmark, front_matter
from wordnet_splits.hub.entries import HUB_ROLES, hub_task
from wordnet_splits.hub.release import FENCE, RESULTS, Release
from wordnet_splits.remote import MAIN, Address
from wordnet_splits.wordnet.similarity.measures import constants_of

ABOUT = """# {name}

Which classes and images are in-distribution, near-OOD, far-OOD, external (training outliers) or excluded,
and why: made and checked by [wordnet-splits](https://pypi.org/project/wordnet-splits). No pixels are here: an
`image_id` names the image in every copy of its source.
"""
HIERARCHY_FILES = f"a hierarchy in `{SOURCES}/{TREE}` and `{SOURCES}/{NODES}`"
FOLDER = "FOLDER"
"""Placeholder for the path of a folder in its card."""
YAML_WIDTH = 1000
"""Longest YAML line in letters, so that none is folded."""


def card_of(release: Release, address: Address | None) -> str:
    """Return the text of ``README.md`` for a release published at an address, or as a folder (None).

    It starts with the metadata (licence, tags) and the text of the release's own ``README.md``.
    """
    name = address.repo.partition("/")[2] if address else release.title
    head: dict[str, Any] = {"pretty_name": name, "task_categories": ["image-classification"]}
    head |= {**front_matter(release.benchmarks), **release.metadata}
    head["configs"] = list(_configs(release))
    yaml = need("yaml", "hub", where="the card")
    metadata = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=YAML_WIDTH)
    sections = [release.about.strip() or ABOUT.format(name=name).strip(), _reading(release, address)]
    sections += ["## Benchmarks", *map(_benchmark, release.benchmarks)]
    sections += [_sources(release), _checking(release, address), _citations(release)]
    return f"{FENCE}{metadata}{FENCE}\n" + "\n\n".join(sections) + "\n"


def _configs(release: Release) -> Iterator[dict[str, Any]]:
    """Yield the configurations for `datasets`: images by split and classes of each benchmark, and results."""
    for manifest in release.benchmarks:
        splits = list(dict.fromkeys(split for split, _ in manifest.parts))
        if splits:
            files = [{"split": s, "path": f"{manifest.name}/images/{s}/*.parquet"} for s in splits]
            yield {"config_name": manifest.name, "data_files": files}
        classes = f"{manifest.name}/classes.parquet"
        yield {
            "config_name": f"{manifest.name}-classes",
            "data_files": [{"split": "classes", "path": classes}],
        }
    if any(path.startswith(f"{RESULTS}/") and path.endswith("/results.parquet") for path in release.files):
        files = [{"split": "results", "path": f"{RESULTS}/*/results.parquet"}]
        yield {"config_name": RESULTS, "data_files": files}


def _example(release: Release) -> tuple[Manifest, str, str]:
    """Return a benchmark, preferably with images, and a split and a group in it."""
    candidates = [manifest for manifest in release.benchmarks if manifest.parts] or list(release.benchmarks)
    split, group = next(iter(candidates[0].parts), ("test", "GROUP"))
    return candidates[0], split, group


def _rooted_sources(manifest: Manifest) -> list[str]:
    """Return the sources of a benchmark whose pictures are read from the user's folders, sorted."""
    recipe = load_recipe(manifest)
    return sorted(source for source in recipe.sources if source_class(source, recipe.datasets).rooted)


def _reading(release: Release, address: Address | None) -> str:
    manifest, split, group = _example(release)
    name = manifest.name
    file = f"{name}/images/{split}/{group}.parquet"
    if address is None:
        at, repo, revision = FOLDER, FOLDER, ""
        opening, path = "`FOLDER` is the path of this folder. ", f'"{FOLDER}/{file}"'
        download = ""
    else:
        at, repo = f"hf://datasets/{address.repo}@{address.revision}", address.repo
        opening, revision = "", f', revision="{address.revision}"'
        download = "\nfrom huggingface_hub import hf_hub_download"
        path = f'hf_hub_download("{repo}", "{file}", repo_type="dataset"{revision})'
    roots = json.dumps(dict.fromkeys(_rooted_sources(manifest), "DIR"))
    return f"""## Read it

{opening}Tables, without anything of ours:

```python
from datasets import load_dataset

images = load_dataset("{repo}", "{name}", split="{split}"{revision})
classes = load_dataset("{repo}", "{name}-classes", split="classes"{revision})
```

```python
import pandas

images = pandas.read_parquet("{at}/{file}")
```

```python
import duckdb
import polars{download}

path = {path}
images = polars.read_parquet(path)
images = duckdb.read_parquet(path).fetchall()
```

Any reader of [Croissant](https://mlcommons.org/croissant) takes `{name}/croissant.json`.

The pictures, from your own copies of the sources, with every fingerprint compared:

```python
from loaders import UnknownDetectionSet

test = UnknownDetectionSet("{at}/{name}", split="{split}", roots={roots})
```"""


def _benchmark(manifest: Manifest) -> str:
    recipe = load_recipe(manifest)
    data = manifest.data
    lines = [f"### {manifest.name}", "", markdown_text(recipe.title or "A benchmark."), ""]
    lines += _about(recipe.about)
    lines += [f"- version {manifest.version}, fingerprint `{manifest.fingerprint or 'none yet: see below'}`"]
    lines += [f"- {markdown_text(change)}" for change in changes_of(manifest)]
    taxonomy = data.taxonomy
    decided_by = markdown_text(f"{taxonomy.name} {taxonomy.version}")
    edges = f"hierarchy `{taxonomy.hierarchy}`" if manifest.own_hierarchy is None else HIERARCHY_FILES
    lines += [f"- decided by {decided_by}, {edges}"]
    if data.awaiting:
        awaited = ", ".join(data.awaiting)
        lines += [f"- images of {awaited} are awaited: their ids are in no list that we may read"]
    noun = taxonomy_of(manifest).noun
    lines += [
        f"- {group.name}: {markdown_text(rule_words(group.classes, group.source, noun))}"
        for group in recipe.group
    ]
    measures = (bound.measure for group in recipe.group for bound in bounds_in(group.classes))
    if words := constants_of(measures, taxonomy_of(manifest)):
        lines += [f"- constants of the measures: {words}"]
    lines += ["", _table(manifest.groups)]
    notes = dict.fromkeys(f"- {row.group}: {markdown_text(row.note)}" for row in manifest.groups if row.note)
    lines += ["Notes:", "", *notes, ""] if notes else []
    if data.leaks:
        lines += ["Known leaks:", ""]
        lines += [f"- {markdown_text(leak.sentence)}" for leak in data.leaks]
    return "\n".join(lines).strip()


def _about(about: About) -> Iterator[str]:
    """Yield the author's description of a benchmark: a paragraph, and a line for each key with a value."""
    if about.description:
        yield from (markdown_text(about.description), "")
    facts = {
        "by": "; ".join(map(_author, about.authors)),
        "licence": about.licence,
        "DOI": about.doi and f"https://doi.org/{about.doi}",
        "page": about.url,
        "date": about.date,
        "contact": about.contact,
        "described in": None if about.paper and about.paper.startswith("@") else about.paper,
        **{f"version {version}": note for version, note in about.version_notes.items()},
        "limitations": about.limitations,
        "biases": about.biases,
        "personal information": about.personal_information,
        "use cases": about.use_cases,
        "social impact": about.social_impact,
        "synthetic data": None if about.synthetic_data is None else ("no", "yes")[about.synthetic_data],
    }
    yield from (f"- {key}: {markdown_text(value)}" for key, value in facts.items() if value)


def _author(author: Author) -> str:
    orcid = author.orcid and f"ORCID {author.orcid}"
    remarks = ", ".join(filter(None, (author.affiliation, orcid)))
    return author.full_name + (f" ({remarks})" if remarks else "")


def _table(groups: Sequence[GroupRow]) -> str:
    columns = ("group", "role", "source", "split", "published", "here", "status")
    rows = []
    for row in groups:
        here = _number(row.expected, "({:,})") if row.actual is None else _number(row.actual)
        rows.append((row.group, row.role, row.source, row.split, _number(row.published), here, row.status))
    return markdown_table(columns, rows, right=("published", "here"))


def _number(value: int | None, form: str = "{:,}") -> str:
    return "" if value is None else form.format(value)


def _sources(release: Release) -> str:
    names = sorted({name for m in release.benchmarks for name in load_recipe(m).sources_named})
    intro = "## Sources\n\nThe pictures are their publishers', under their terms; none is here.\n\n"
    datasets = Sources.of(*(manifest.declarations for manifest in release.benchmarks))
    infos = [source_info(name, datasets) for name in names]
    rows = [(name, i.title, i.licence, i.url) for name, i in zip(names, infos, strict=True)]
    return (intro + markdown_table(("source", "what", "licence", "where"), rows)).rstrip()


def _checking(release: Release, address: Address | None) -> str:
    manifest = _example(release)[0]
    name = manifest.name
    if address is None:
        install, at, check = (
            "wordnet-splits",
            FOLDER,
            f"sha256sum -c {SUMS}\nwordnet-splits verify {FOLDER}/{name}",
        )
    else:
        install, at = "'wordnet-splits[hub]'", str(address)
        revision = "" if address.revision == MAIN else f"@{address.revision}"
        check = f"wordnet-splits hub pull {address.repo}{revision}"
    roots = "".join(f" --root {source}=DIR" for source in _rooted_sources(manifest))
    recipe = name if name in recipe_names() else f"{at}/{name}"
    hierarchies = list(dict.fromkeys(taxonomy_of(manifest).title for manifest in release.benchmarks))
    return f"""## Make it anew, and check it

```sh
pip install {install}
{check}
wordnet-splits build {recipe}{roots}
wordnet-splits diff {at}/{name} build/{name}
```

`hub pull` recomputes every fingerprint before it takes a table. A row's `digest` is the SHA-256 of its pixels
or its file where they were at hand, null where not. Near and far are so by the nodes and edges of
{join_names(hierarchies)} alone: how alike two classes look is another question."""


def _citations(release: Release) -> str:
    citations = map(cite_benchmark, release.benchmarks)
    entries = dict.fromkeys(entry.bibtex for citation in citations for entry in citation.entries)
    text = "\n\n".join(entries)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # no text of an entry ends the block
    return f"## Cite\n\n{fence}bibtex\n{text}\n{fence}"


EVAL: Final = "eval.yaml"


def eval_yaml(release: Release, name: str) -> str:
    """Return the text of ``eval.yaml``: a task (a leaderboard) for near and for far of each benchmark.

    Parameters
    ----------
    name : of the repository.
    """
    yaml = need("yaml", "hub", where=EVAL)
    titles = [load_recipe(manifest).title or manifest.name for manifest in release.benchmarks]
    tasks = [
        {"id": hub_task(manifest.name, role), "config": manifest.name, "split": "test"}
        for manifest in release.benchmarks
        for role in HUB_ROLES
        if any(row.role == role and row.split == "test" for row in manifest.groups)
    ]
    benchmark = {
        "name": name,
        "description": "AUROC of detecting unknown classes, the mean over the near or the far sets. "
        + "; ".join(titles),
        **({} if release.framework is None else {"evaluation_framework": release.framework}),
        "tasks": tasks,
    }
    return str(yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=1000))
