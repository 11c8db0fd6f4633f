"""Equal and nearly equal images within and between datasets."""
