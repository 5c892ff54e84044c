"""Agents that operators run for months: durable, exact, and open to an auditor.

A live agent is its journal of events (`journal/`); `memory` is a pure function of them, and
`session` keeps the two in step. Start with `agent`: its calls write (`acts/`), those of its base in
`view` read (`told/`). `people/` says who the arms are and which files are exchanged with operators.
`creating` makes new files, also of old ones; `checking` looks whether all of a file hangs together;
`settings` and `clock` are what was told once, `words` what operators call things.

May import logs, learn and what these may import.
"""
