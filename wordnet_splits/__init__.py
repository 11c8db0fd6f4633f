"""Benchmarks for what a vision model does not know: ID, near-OOD, far-OOD and external splits from WordNet.

Everything public is reachable from here and imported when first used, so that ``import wordnet_splits``
stays far below a third of a second:

>>> import wordnet_splits as ws
>>> ws.compare("n02084071", "n02121620").lcs  # dog and cat meet at carnivore
'n02075296'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordnet_splits.audit.audit import audit_classes as audit_classes
    from wordnet_splits.audit.class_sets import class_set as class_set
    from wordnet_splits.audit.class_sets import class_sets as class_sets
    from wordnet_splits.audit.thresholds import thresholds as thresholds
    from wordnet_splits.base.errors import SplitsError as SplitsError
    from wordnet_splits.catalog import Catalog as Catalog
    from wordnet_splits.catalog import catalog_names as catalog_names
    from wordnet_splits.catalog import load_catalog as load_catalog
    from wordnet_splits.catalog.check import check_catalogs as check_catalogs
    from wordnet_splits.catalog.inventory import load_inventory as load_inventory
    from wordnet_splits.catalog.lists import load_list as load_list
    from wordnet_splits.checks.doctor import diagnose as diagnose
    from wordnet_splits.checks.freeze import freeze as freeze
    from wordnet_splits.checks.leaks import report_leaks
    from wordnet_splits.checks.listing import list_benchmarks as list_benchmarks
    from wordnet_splits.checks.verify import verify_benchmark as verify_benchmark
    from wordnet_splits.duplicates.join import join as join
    from wordnet_splits.duplicates.near_duplicates import find_near_duplicates as find_near_duplicates
    from wordnet_splits.exchange.export import export_benchmark as export_benchmark
    from wordnet_splits.exchange.importing import import_benchmark as import_benchmark
    from wordnet_splits.fetching.fetch import fetch as fetch_source
    from wordnet_splits.fidelity.fidelity import fidelity_rows as fidelity_rows
    from wordnet_splits.finding import load_manifest as load_manifest
    from wordnet_splits.finding import manifest_names as manifest_names
    from wordnet_splits.making import Build as Build
    from wordnet_splits.making import build_benchmark as build_benchmark
    from wordnet_splits.manifest import Manifest as Manifest
    from wordnet_splits.manifest.diff import diff_manifests as diff_manifests
    from wordnet_splits.propose import propose_synsets as propose_synsets
    from wordnet_splits.propose.catalog_maker import make_catalog as make_catalog
    from wordnet_splits.publishing.cite import cite_benchmark as cite_benchmark
    from wordnet_splits.recipe import Recipe as Recipe
    from wordnet_splits.recipe import class_set_names as class_set_names
    from wordnet_splits.recipe import load_recipe as load_recipe
    from wordnet_splits.recipe import recipe_names as recipe_names
    from wordnet_splits.reports.distance import distance as distance
    from wordnet_splits.reports.explain import explain_benchmark as explain_benchmark
    from wordnet_splits.reports.explain import explain_class as explain_class
    from wordnet_splits.reports.make_inventory import make_inventory as make_inventory
    from wordnet_splits.reports.new_recipe import new_recipe as new_recipe
    from wordnet_splits.robust.robust import robust_roles as robust_roles
    from wordnet_splits.similarity import compare as compare
    from wordnet_splits.similarity import similarity_matrix as similarity_matrix
    from wordnet_splits.sources import open_source as open_source
    from wordnet_splits.sources import source_info as source_info
    from wordnet_splits.sources import source_names as source_names
    from wordnet_splits.taxonomy import Taxonomy as Taxonomy
    from wordnet_splits.taxonomy.search import find_synsets as find_synsets

# public name -> module, and the name there where it differs. No public name is a module's: importing
# wordnet_splits.making anywhere would put the module in its place
_PUBLIC = {
    "Build": "making",
    "Catalog": "catalog",
    "Manifest": "manifest",
    "Recipe": "recipe",
    "SplitsError": "base.errors",
    "Taxonomy": "taxonomy",
    "audit_classes": "audit.audit",
    "build_benchmark": "making",
    "catalog_names": "catalog",
    "check_catalogs": "catalog.check",
    "cite_benchmark": "publishing.cite",
    "class_set": "audit.class_sets",
    "class_set_names": "recipe",
    "class_sets": "audit.class_sets",
    "compare": "similarity",
    "diff_manifests": "manifest.diff",
    "diagnose": "checks.doctor",
    "distance": "reports.distance",
    "explain_benchmark": "reports.explain",
    "explain_class": "reports.explain",
    "fetch_source": "fetching.fetch:fetch",
    "export_benchmark": "exchange",
    "fidelity_rows": "fidelity.fidelity",
    "find_near_duplicates": "duplicates.near_duplicates",
    "find_synsets": "taxonomy.search",
    "freeze": "checks.freeze",
    "join": "duplicates.join",
    "import_benchmark": "exchange",
    "list_benchmarks": "checks.listing",
    "load_catalog": "catalog",
    "load_inventory": "catalog.inventory",
    "load_list": "catalog.lists",
    "load_manifest": "finding",
    "load_recipe": "recipe",
    "make_catalog": "propose.catalog_maker",
    "make_inventory": "reports.make_inventory",
    "manifest_names": "finding",
    "new_recipe": "reports.new_recipe",
    "open_source": "sources",
    "propose_synsets": "propose",
    "recipe_names": "recipe",
    "report_leaks": "checks.leaks",
    "robust_roles": "robust.robust",
    "similarity_matrix": "similarity",
    "source_info": "sources",
    "source_names": "sources",
    "thresholds": "audit.thresholds",
    "verify_benchmark": "checks.verify",
}
__all__ = [
    "Build",
    "Catalog",
    "Manifest",
    "Recipe",
    "SplitsError",
    "Taxonomy",
    "audit_classes",
    "build_benchmark",
    "catalog_names",
    "check_catalogs",
    "cite_benchmark",
    "class_set",
    "class_set_names",
    "class_sets",
    "compare",
    "diagnose",
    "diff_manifests",
    "distance",
    "explain_benchmark",
    "explain_class",
    "export_benchmark",
    "fetch_source",
    "fidelity_rows",
    "find_near_duplicates",
    "find_synsets",
    "freeze",
    "import_benchmark",
    "join",
    "list_benchmarks",
    "load_catalog",
    "load_inventory",
    "load_list",
    "load_manifest",
    "load_recipe",
    "make_catalog",
    "make_inventory",
    "manifest_names",
    "new_recipe",
    "open_source",
    "propose_synsets",
    "recipe_names",
    "report_leaks",
    "robust_roles",
    "similarity_matrix",
    "source_info",
    "source_names",
    "thresholds",
    "verify_benchmark",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("wordnet-splits")
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].partition(":")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
