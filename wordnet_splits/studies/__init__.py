"""Studies of the shipped benchmarks: robustness of roles, fidelity to papers, class sets."""
