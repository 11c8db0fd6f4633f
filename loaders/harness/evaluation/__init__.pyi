from .array_evaluation import evaluate_arrays as evaluate_arrays
from .benchmark_arrays import image_ids as image_ids
from .check import CheckedResults as CheckedResults
from .check import check_results as check_results
from .model_evaluation import evaluate as evaluate
from .recompute import remeasure as remeasure
from .results import Results as Results
