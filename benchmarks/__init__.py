"""Benchmarks: ratios within one run, against plain numpy and against the registry's peers."""
