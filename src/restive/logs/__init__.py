"""People's logs: read, fitted, checked, and replayed under other policies.

Start with `log` (what was seen when), `reading` (files to a log, by pyarrow), `fitting` (`fit_log`)
and `replay`. `counts` is all that a posterior needs of a log; `fitted` is what a fit finds;
`population` has the law of all its arms, `lists` what follows for whom to pull next; `checks` ask
whether chains describe the log at all (`comparisons` says what they compare), `held_out` whether
chains help to predict, and `forgetting` how long to remember, where arms change (`forgetting_words`
says it). `play` and `calibration` are halves of a replay; `page` and `prior_file` write what was
found.

May import measure and what that may import.
"""
