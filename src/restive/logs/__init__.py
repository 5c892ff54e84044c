"""People's logs: read, fitted, checked, and replayed under other policies.

Start with `reading` (files to sightings), `fitting` (`fit_log`) and `replay`. `fitted` is what a
fit finds; `kind_priors` estimates what arms of a kind may be; `checks` ask whether chains describe
the log at all.

May import measure and what that may import.
"""
