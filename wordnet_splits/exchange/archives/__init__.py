"""The archives in which the papers' authors keep their own copies of benchmarks."""
