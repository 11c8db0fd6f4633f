"""``docs/custom-hierarchies.md``, run as it stands, next to what its trees say without our code."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import wordnet_splits as ws
from tests.selection import cases
from tests.wordnet_splits.command import environment

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "custom-hierarchies.md").read_text("utf-8")
PROGRAM = f'wordnet-splits() {{ "{sys.executable}" -m wordnet_splits.cli.main "$@"; }}\n'


def blocks_of(section: str) -> list[tuple[str, str]]:
    """Return (language, code) of the blocks of a section that run."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(sh|python)\n(.*?)```", text, re.DOTALL)


def run_block(language: str, block: str, folder: Path) -> None:
    start = ["bash", "-e", "-c", PROGRAM + block] if language == "sh" else [sys.executable, "-c", block]
    variables = environment(folder, XDG_CACHE_HOME=str(folder / "cache"))
    done = subprocess.run(start, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (block, done.stdout, done.stderr)
    for shown in re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE):
        assert shown in done.stdout.splitlines()


def groups_of(benchmark: Path) -> dict[str, set[str]]:
    """Return the classes of each role."""
    groups: dict[str, set[str]] = {}
    for row in ws.load_manifest(str(benchmark)).classes.to_pylist():
        groups.setdefault(row["role"], set()).add(row["class_id"])
    return groups


def superclasses(folder: Path) -> None:
    own, shipped = groups_of(folder / "build/cifar-superclasses"), ws.load_manifest("unknown-cifar").classes
    rows = [row for row in shipped.to_pylist() if row["source"] == "cifar100"]
    for role, count in (("id", 40), ("near", 60)):
        assert own[role] == {row["class_id"] for row in rows if row["role"] == role}
        assert len(own[role]) == count


def ranks(folder: Path) -> None:
    lines = (folder / "plants.tsv").read_text("utf-8").splitlines()
    parent = dict(line.split("\t") for line in lines if not line.startswith("#"))
    names = [item.class_id for item in ws.load_catalog("inaturalist").classes]
    chains = {name: [name.replace(" ", "_")] for name in names}
    for chain in chains.values():
        while chain[-1] in parent:
            chain.append(parent[chain[-1]])
    assert Counter(map(len, chains.values())) == {6: 108, 1: 2}
    groups = groups_of(folder / "build/plants")
    assert len(groups["id"]) == 40
    unknown = {name: chain for name, chain in chains.items() if len(chain) == 6 and name not in groups["id"]}
    known = [chains[name] for name in groups["id"]]
    assert groups["near"] == {name for name, c in unknown.items() if c[2] in {k[2] for k in known}}
    assert groups["far"] == {name for name, c in unknown.items() if c[4] not in {k[4] for k in known}}
    assert (len(groups["near"]), len(groups["far"])) == (26, 10)


def products(folder: Path) -> None:
    assert groups_of(folder / "pulled/shop") == {
        "id": {"drill", "espresso machine", "tent"},
        "near": {"jigsaw", "sander", "pod machine", "filter machine", "backpack", "head lamp"},
        "far": {"bicycle", "hammer", "kettle", "toaster"},
    }
    assert "sources/hierarchy.tsv" in (folder / "published" / "SHA256SUMS").read_text("utf-8")
    assert (folder / "pages" / "index.html").is_file()


def additions(folder: Path) -> None:
    assert len((folder / "tree.tsv").read_text("utf-8").splitlines()) > 82_000


SECTIONS: dict[str, Callable[[Path], None]] = {
    "CIFAR-100's superclasses": superclasses,
    "Ranks of iNaturalist's plants": ranks,
    "From a folder of products to a published benchmark": products,
    "WordNet with additions": additions,
}


@pytest.mark.docs
@pytest.mark.parametrize("section", cases(SECTIONS, always="CIFAR-100's superclasses"))
def test_the_section_runs_as_it_stands(section: str, tmp_path: Path) -> None:
    shutil.copy(DOCS / "plants.tsv", tmp_path)
    for language, block in blocks_of(section):
        run_block(language, block, tmp_path)
    SECTIONS[section](tmp_path)


NEWICK = "((Pica_pica,(Corvus_corax,Corvus_corone)Corvus),(Parus_major,Cyanistes_caeruleus)Paridae)birds;\n"
SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <https://example.org/parts/> .
:fastener a skos:Concept ; skos:prefLabel "fastener" ; skos:definition "A part that holds others together." .
:screw a skos:Concept ; skos:broader :fastener ; skos:prefLabel "screw"@en ; skos:altLabel "machine screw" .
:nut a skos:Concept ; skos:broader :fastener ; skos:prefLabel "nut" .
"""
OBO = """format-version: 1.2
ontology: skin

[Term]
id: SKIN:1
name: skin lesion
def: "A change of the skin." []

[Term]
id: SKIN:2
name: naevus
synonym: "mole" EXACT []
is_a: SKIN:1 ! skin lesion

[Term]
id: SKIN:3
name: globule
is_a: SKIN:1 ! skin lesion
relationship: part_of SKIN:2 ! naevus
"""
FORMATS = {
    "Bio": ("birds.nwk", NEWICK, "Corvus_corax", ["Corvus", "clade-1", "birds"], ("Corvus_corax",), ""),
    "rdflib": ("parts.ttl", SKOS, "screw", ["fastener"], ("screw", "machine_screw"), ""),
    "obonet": ("skin.obo", OBO, "SKIN:2", ["SKIN:1"], ("naevus", "mole"), "SKIN:3"),
}


@pytest.mark.parametrize("library", FORMATS)
def test_a_converter_writes_the_tree_of_its_file(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason="a converter of the page needs it")
    file, text, node, above, lemmas, part = FORMATS[library]
    (tmp_path / file).write_text(text, "utf-8")
    (block,) = [
        code
        for _, code in blocks_of("Other formats")
        if re.search(rf"^(from|import) {library}\b", code, re.M)
    ]
    run_block("python", block, tmp_path)
    nodes = tmp_path / "nodes.tsv"
    taxonomy = ws.Taxonomy.from_files(tmp_path / "tree.tsv", nodes if nodes.exists() else None)
    assert [*taxonomy.ancestors(node)] == [node, *above]
    assert taxonomy.lemmas(node) == lemmas
    assert taxonomy.parts(node) == ((part,) if part else ())
    if nodes.exists():
        assert taxonomy.gloss(above[-1]).startswith("A ")
