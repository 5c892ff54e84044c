"""How kernels are compiled: the only place that imports Numba, and that knows it from inside.

Start with `compiler`, and `mode`: with tricks, plainly, or not at all. `handles` hand many arrays
over at once (`addresses` tells Numba how), `parts` are functions that only kernels call, `vectors`
are rows of eight numbers (`registers` has the instructions), `cache` says where compiled kernels
are kept, and `cache_guard` what happens when that fails.
"""
