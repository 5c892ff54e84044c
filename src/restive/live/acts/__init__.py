"""What operators do: each act is events in the journal, and changes memory by them alone.

A decision is made in `deciding`, results are taken in by `recording`, the last act is withdrawn by
`undoing`, arms join and leave in `membership`, and `forgetting` is for arms that have changed.
`given` checks what callers hand in, `open_tick` has what was decided and the results so far.
"""
