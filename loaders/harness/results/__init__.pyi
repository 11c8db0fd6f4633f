from .check import CheckedResults as CheckedResults
from .check import check_results as check_results
from .exported_scores import export_scores as export_scores
from .results import Results as Results
from .rows_from_scores import remeasure as remeasure
from .subsets import recompute as recompute
