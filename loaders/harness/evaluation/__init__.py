"""Any models and detectors on any benchmark, on custom sets or on arrays."""
