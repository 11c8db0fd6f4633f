from .loading import load_model as load_model
from .loading import open_models as open_models
from .model import Model as Model
from .vision_language import ZeroShot as ZeroShot
from .vision_language import zero_shot as zero_shot
