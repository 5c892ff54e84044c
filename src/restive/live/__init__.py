"""Agents that operators run for months: durable, exact, and open to an auditor.

A live agent is its `journal`, events in one SQLite file (`sqlite`) or in a schema of a PostgreSQL
database (`postgres`); `memory` is a pure function of them, and `session` keeps the two in step.
Start with `agent`: its calls write, those of its base in `view` read. A decision is made in
`deciding`, results are taken in by `recording`, the last act is withdrawn by `undoing`, and all
write the tables beside the events (`sql_tables`). `checking` looks whether all of a file hangs
together, `file_guard` whether it is still the file that was opened.
`learned` and `status` tell what it knows and how it does (from sums that `summaries` keeps),
`remembering` whether the arms change and how long to remember, `futures` what may come,
`listing` has its arms and tables, `explaining` why somebody is on its list;
`operator_files` is what it exchanges with people as CSV files. `roster` says who the arms are,
`settings` and `clock` what was told once, `words` what operators call things; `alarms` watch
whether the model holds, `onset` says since when it does not, and `forgetting` is for arms that have
changed.

May import logs, learn and what these may import.
"""
