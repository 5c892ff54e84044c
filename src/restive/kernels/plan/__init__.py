"""Kernels of planning: one arm under a subsidy, and the joint chain of all arms."""
