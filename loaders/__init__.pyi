from .dataset import UnknownDetectionSet as UnknownDetectionSet
from .harness import evaluate as evaluate
from .harness import evaluate_arrays as evaluate_arrays
from .harness import train as train
