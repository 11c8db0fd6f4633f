"""Archives of benchmarks published by the papers' authors."""
