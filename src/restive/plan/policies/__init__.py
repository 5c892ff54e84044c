"""Policy mappings: from a bandit with known parameters to a policy (Section 2.3 of the paper).

One mapping per file. To add one, write it, and give it a row in `registry`.
"""
