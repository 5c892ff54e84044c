"""The problem: arms, bandits, and what follows from their matrices alone.

Start with `arm` (one chain that can be pulled) and `bandit` (K of them); `beliefs` has b(s, n),
what is known of an arm n steps after it was seen in state s. `chains` looks at one matrix,
`reduction` turns rewards of arms that are not pulled into rewards for pulls, `toml_file` reads
problems.

May import kernels, pages and the modules at the root.
"""
