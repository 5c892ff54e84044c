"""Kernels of logs: reading, sorting, fitting and checking."""
