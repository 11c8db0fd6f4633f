"""Benchmarks for what a vision model does not know."""
