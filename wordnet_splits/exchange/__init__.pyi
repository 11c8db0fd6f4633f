from .exporter import Exported as Exported
from .exporter import export_benchmark as export_benchmark
from .formats import format_names as format_names
from .importer import import_benchmark as import_benchmark
from .recipe_from_lists import Imported as Imported
