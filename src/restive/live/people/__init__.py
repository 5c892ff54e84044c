"""Who the arms are, and the files that are exchanged with operators.

`roster` knows the arms by name and kind, `prior_arms` which of them a prior begins with. `sheets`
reads and writes tables as spreadsheet programs do, `arm_files` knows the columns of people, and
`operator_files` those of lists and results.
"""
