"""Benchmarks from a user's own folders: inventories, recipes, and the whole way."""
