from .dataset import UnknownDetectionSet as UnknownDetectionSet
from .harness import evaluate as evaluate
from .harness import evaluate_arrays as evaluate_arrays
from .harness.training.model_source import train as train
