"""The one loop: a learner or a policy in its world.

Start with `actor` (all that one who acts knows), `steps` (what happens in a step) and `engine`
(many steps of many replications); `online` cuts a step in two for an agent whose world is the
user's; `changes` is for worlds whose arms change.
"""
