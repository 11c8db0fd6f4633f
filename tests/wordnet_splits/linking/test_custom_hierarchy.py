"""Class folders of a made shop, linked by the names of its product tree, and read back beside the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.datasets.catalog import read_catalog
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.catalog_maker import make_catalog
from wordnet_splits.wordnet.similarity import compare_synsets
from wordnet_splits.wordnet.taxonomy import Taxonomy

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

TREE = """child\tparent
hand-tools\ttools
power-tools\ttools
p1\thand-tools
p2\thand-tools
p3\tpower-tools
p4\tpower-tools
p5\tgarden
p6\tgarden
p7\thand-tools
tools\tproducts
garden\tproducts
"""
NODES = """node\tnames\tgloss
garden\tgarden supply\tThings for gardens.
hand-tools\thand tool\tTools without a motor.
p1\thammer|claw hammer\tDrives nails.
p2\tknife\tCuts.
p3\tdrill#1|power drill\tBores holes.
p4\tjigsaw|bayonet saw\tSaws curves.
p5\tseeder|drill#2\tSows in rows.
p6\tcaf\N{LATIN SMALL LETTER E WITH ACUTE} set, 3-in-1\tA table and two chairs.
p7\t4711\tA wrench that is known by its number.
power-tools\tpower tool\tTools with a motor.
products\tproduct\tAll that is sold.
tools\ttool\tTools.
"""
LINKED = {
    "hammer": ("p1", "exact"),  # the name
    "knives": ("p2", "variant"),  # an irregular plural
    "jigsaws": ("p4", "variant"),
    "power_drill": ("p3", "exact"),  # the second name
    "Cafe Set 3-in-1": ("p6", "exact"),  # without its accent and comma
    "seeder": ("p5", "exact"),
    "drill#2": ("p5", "exact"),
    "p2": ("p2", "exact"),  # the id of a node
}
ASKED = {"drill": ("p3", "proposed"), "toaster": ("", ""), "4711": ("", ""), "normal": ("", "")}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tree.tsv").write_text(TREE, encoding="utf-8")
    (tmp_path / "shop" / "nodes.tsv").write_text(NODES, encoding="utf-8")
    return tmp_path / "shop" / "tree.tsv"


def test_folders_are_linked_by_the_names_of_the_nodes(command: Command, tmp_path: Path, tree: Path) -> None:
    own.class_folders(tmp_path / "pics", [*LINKED, *ASKED], {"test": 1})
    done = command("catalog", "make", "--root", "pics", "--wordnet", tree, "--out", "shop.tsv", "--json")
    assert (done.code, set(done.json["unsure"])) == (3, set(ASKED))
    catalog = read_catalog(tmp_path / "shop.tsv", has_nodes=True)
    assert {c.class_id: (" ".join(c.wnids), c.mapped) for c in catalog} == LINKED | ASKED
    assert all("tree.tsv" in row.why for row in catalog)
    assert not any(term in row.why for row in catalog for term in ("WordNet", "synset", "adjective"))
    again = make_catalog(
        tmp_path / "pics",
        tmp_path / "shop.tsv",
        ask=lambda question: "p5" if question.proposal.name == "drill" else "",
        taxonomy=Taxonomy.from_files(tree, tree.parent / "nodes.tsv"),
    )
    assert again.asked == len(ASKED)
    assert read_catalog(tmp_path / "shop.tsv", has_nodes=True)["drill"].wnids == ("p5",)


def test_a_declared_dataset_is_linked_to_its_own_hierarchy(
    command: Command, tmp_path: Path, tree: Path
) -> None:
    own.class_folders(tmp_path / "shop" / "pics", ["hammer", "jigsaws"], {"test": 1})
    (tmp_path / "shop" / "dataset.toml").write_text(
        'name = "shop"\nlayout = "folders"\ncatalog = "shop.tsv"\n'
        '[hierarchy]\nfile = "tree.tsv"\nname = "Shop"\n',
        encoding="utf-8",
    )
    make = ("catalog", "make", "--root", "shop", "--out", "shop/shop.tsv", "--json")
    done = command(*make)
    assert (done.code, [row["wnid"] for row in done.json["rows"]]) == (0, ["p1", "p4"])
    assert all("Shop" in row["reason"] for row in done.json["rows"])
    assert command(*make, "--wordnet", tree).code == 2


def test_identifiers_and_languages_are_wordnets(command: Command, tmp_path: Path, tree: Path) -> None:
    make = ("catalog", "make", "--wordnet", tree, "--out", "x.tsv")
    for arguments in (("Q144", "i46360"), ("chien", "--language", "fr")):
        done = command(*make, *arguments)
        assert (done.code, done.err.count("\n")) == (2, 1)
    (tmp_path / "ids.tsv").write_text("Q144\tclaw hammer#1\nQ146\tdrill#2\nQ147\tp2\n", encoding="utf-8")
    done = command(*make, "Q144", "Q146", "Q147", "--ids", "ids.tsv", "--json")
    assert [row["wnid"] for row in done.json["rows"]] == ["p1", "p5", "p2"]
    (tmp_path / "ids.tsv").write_text("Q144\ti46360\n", encoding="utf-8")
    assert command(*make, "Q144", "--ids", "ids.tsv").code == 2


def test_no_word_list_of_wordnet_speaks_for_another_hierarchy_of_its_version(tree: Path) -> None:
    taxonomy = Taxonomy.from_files(tree, tree.parent / "nodes.tsv", name="Shop", version="3.0")
    assert [p.wnid for p in propose_synsets(["smartphone", "ramen"], taxonomy=taxonomy).proposals] == ["", ""]
    with pytest.raises(TaxonomyError):
        propose_synsets(["chien"], taxonomy=taxonomy, language="fr")


def test_the_words_of_an_id_are_a_name_where_no_other_node_has_it(tmp_path: Path) -> None:
    tree, nodes = tmp_path / "tree.tsv", tmp_path / "nodes.tsv"
    ids = ("crane-b", "crane-m", "lift-x", "drill", "sower")
    tree.write_text("child\tparent\n" + "".join(f"{node}\tthing\n" for node in ids), encoding="utf-8")
    nodes.write_text(
        "node\tnames\nthing\tthing\ncrane-b\tcrane#2|garden crane\ncrane-m\tcrane#1|lift x\nlift-x\thoist\n"
        "drill\tdrill#1\nsower\tdrill#2\n",
        encoding="utf-8",
    )
    names = {"crane b": "crane-b", "crane m": "crane-m", "lift x": "crane-m", "hoist": "lift-x"}
    found = propose_synsets([*names, "drill", "sower"], taxonomy=str(tree)).proposals
    assert [p.wnid for p in found] == [*names.values(), "drill", "sower"]
    assert ["2 nodes" in p.reason for p in found[-2:]] == [True, False]
    assert compare_synsets("hoist", "sower", taxonomy=str(tree)).distance == 2
