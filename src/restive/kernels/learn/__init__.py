"""Kernels of learning: weights, episodes, particles and the learners' own steps."""
