"""Kernels of logs: fitting and checking."""
