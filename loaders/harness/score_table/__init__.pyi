from .export import export_scores as export_scores
from .recomputing import recompute as recompute
