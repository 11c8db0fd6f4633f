from .loading import load_model as load_model
from .loading import open_models as open_models
from .model import Model as Model
