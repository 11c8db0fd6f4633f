from .export import Exported as Exported
from .export import export_benchmark as export_benchmark
from .formats.registry import format_names as format_names
from .imported import Imported as Imported
from .importing import import_benchmark as import_benchmark
