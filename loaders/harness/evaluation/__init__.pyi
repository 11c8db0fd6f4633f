from .array_evaluation import evaluate_arrays as evaluate_arrays
from .benchmark_arrays import image_ids as image_ids
from .model_evaluation import evaluate as evaluate
