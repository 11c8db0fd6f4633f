from .audit import audit_method as audit_method
from .checkpoint import load_checkpoint as load_checkpoint
from .choices import list_networks as list_networks
from .model_source import train as train
from .parameter_sweep import train_sweep as train_sweep
from .recipe import load_recipe as load_recipe
from .recipe import recipe_names as recipe_names
from .runs import train_recipe as train_recipe
