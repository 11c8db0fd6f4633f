"""Checks of benchmarks: verify, freeze, doctor, leaks, and the list of all."""
