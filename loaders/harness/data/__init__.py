"""Arrays of models and detectors, and names with parameters."""
