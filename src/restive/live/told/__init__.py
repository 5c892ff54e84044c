"""What an agent tells: nothing here writes.

`answers` are the values that calls return. `status` tells where the agent stands (from sums that
`summaries` keeps, with what `futures` expects), `learned` what it knows, `explaining` why somebody
is on the list, `listing` its arms and tables, `missing` whose results are missing. `alarms` watch
whether the model holds, `onset` says since when it does not, `remembering` whether the arms change
and how long to remember.
"""
