"""How kernels are compiled: the only place that imports Numba, and that knows it from inside.

Start with `compiler`, and `mode`: with tricks, plainly, or not at all. `handles` hand many arrays
over at once (`addresses` tells Numba how), `parts` are functions that only kernels call, `vectors`
are rows of eight numbers (`registers` has the instructions), `records` are numbers with names,
`layout` says how arrays lie in a handle, `cache` where compiled kernels are kept, `cache_guard`
what happens when that fails, and `compiling` what the user is told meanwhile.
"""
