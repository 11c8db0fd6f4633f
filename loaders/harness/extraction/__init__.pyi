from .activations import Activations as Activations
from .activations import extract as extract
from .activations import extract_together as extract_together
from .batches import choose_transform as choose_transform
from .store import Store as Store
