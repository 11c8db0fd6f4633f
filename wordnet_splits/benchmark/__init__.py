"""Benchmarks: recipe, rules, construction, manifest, checks, and explanations of roles."""
