"""What is kept: events, and tables beside them, in one SQLite file or a schema of PostgreSQL.

Start with `events`, the journal itself; `sqlite` and `postgres` are the two databases behind it.
`sql_tables` are the tables that can be asked (arms, pulls), `file_guard` looks whether a file is
still the one that was opened, `tokens` has who may use an agent over the network, `answered` the
answers that a rebuilt file keeps.
"""
