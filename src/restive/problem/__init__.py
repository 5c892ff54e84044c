"""The problem: arms, bandits, and what follows from their matrices alone.

Start with `arm` (one chain that can be pulled) and `bandit` (K of them); `beliefs` has b(s, n),
what is known of an arm n steps after it was seen in state s. `chains` has what follows from a
matrix (classes, stationary law, mixing time), `reduction` turns rewards of arms that are not pulled
into rewards for pulls. `problem_file` reads and writes problems, with `arm_tables` for their arms
and `toml_text` for what all TOML files share. `changing` has bandits whose arms change at known
steps, `changing_file` their files.

May import kernels, pages and the modules at the root.
"""
