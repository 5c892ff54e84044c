"""Learners other than Thompson sampling's family, compiled: one file each, one interface.

A learner is two functions on its `LearnerMemory`: `choose` writes the arms that it pulls at time t,
`learn` takes in what was seen of them. Both know the rewards of states and nothing of transitions.
"""
