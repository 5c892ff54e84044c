"""Learning unknown parameters: priors, posteriors, and agents that act on them.

Start with `make` (TSDE, or any learner by its name) and `agent` (its calls). A `task` is what a
learner is put on; its arrays are its `learner_state`, and what may be drawn sits in `slots`.
`evidence` is what was seen of an arm, `posterior` what is believed of it; `priors` says what arms
may be, `particles` and `particle_groups` carry continuous ones. `learners` has a file for each
rival; `explain` says why an arm is pulled, `snapshots` are agents as plain data, and
`relearning` makes agents that forget.

May import plan and what that may import.
"""
