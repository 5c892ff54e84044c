"""Compiled inner loops: arrays in, arrays out; no classes, no validation, no input or output.

Only `jit` in it imports numba. Every kernel releases the GIL and keeps IEEE arithmetic (no
fastmath), so that results are the same to the bit on every machine and for any number of threads.

Start with `loop` (`actor`, then `steps`); `plan`, `learn` and `logs` have the kernels of these
rooms. All of them share `chain` (powers and stationary laws), `elementary` (functions with the same
bits everywhere), `moments` and `random`.

May import the modules at the root only.
"""
