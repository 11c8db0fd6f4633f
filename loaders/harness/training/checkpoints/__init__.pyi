from .choices import list_networks as list_networks
from .files import load_checkpoint as load_checkpoint
from .recipe import load_recipe as load_recipe
from .recipe import recipe_names as recipe_names
