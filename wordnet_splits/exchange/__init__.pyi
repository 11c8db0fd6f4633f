from .exporter import export_benchmark as export_benchmark
from .formats.registry import format_names as format_names
from .importer import import_benchmark as import_benchmark
from .results import Exported as Exported
from .results import Imported as Imported
