"""How kernels are compiled: the only place that knows Numba from inside.

Start with `compiler`. `handles` hands many arrays over at once, `parts` are functions that only
kernels call, `vectors` are rows of eight numbers.
"""
