"""Measuring learners: worlds, runs and regret.

Start with `simulation` (one run that can be looked at) and `regret` (curves with error bands).
`world` is a bandit that can be pulled (`batch` many copies of one), `loop` drives the compiled
loop, `replication` runs it many times, `changes` has worlds that change, `compare` puts learners
into the same worlds, `intervals` says how wide a 95% interval is, `theory` has the paper's bounds
as numbers, and `zoo` the named instances.

May import learn and what that may import.
"""
