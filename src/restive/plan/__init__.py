"""Planning with known parameters: which arms to pull, and what that earns in the long run.

Start with `policies` (a mapping per file) and `evaluate` (J of any policy). Below them, `subsidy`
solves one arm with a subsidy for not pulling, `relaxation` bounds every policy, `joint_chain` is
all arms at once; `solved_run` and `simulated_run` find what a choice of arms earns. `summary` is
what `restive plan` shows and `sanity_checks` what it asks back; `recommendation` says what to do
(in sentences by `recommendation_words`), and `picks` is today's list. `always_seen` is `subsidy`
for arms that are always seen; `actors` are the arrays with which a policy enters the compiled loop.

May import problem and what that may import.
"""
