from .activations import Activations as Activations
from .activations import extract as extract
from .activations import extract_together as extract_together
from .store import Store as Store
