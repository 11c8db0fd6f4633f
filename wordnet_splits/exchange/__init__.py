"""Benchmarks in the formats of other projects, both ways; one file a format, listed in `formats.registry`."""

from __future__ import annotations

from wordnet_splits.base.lazy import names_of

__all__ = ["Exported", "Imported", "export_benchmark", "format_names", "import_benchmark"]

__getattr__ = names_of(
    __name__,
    {
        "export": ("Exported", "export_benchmark"),
        "formats.registry": ("format_names",),
        "importing": ("Imported", "import_benchmark"),
    },
)
