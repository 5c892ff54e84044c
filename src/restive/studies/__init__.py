"""Studies: experiments as data, run anywhere, killed and resumed without loss.

Start with `spec` (what a study is) and `runner` (how it is run). `work` is the pure function that
every machine calls; `ledger` is the results folder, with `manifest` and `chunk_file`; `executors`
and `on_dask` say where it runs; `summary` and `export` read results, `report` makes pages of them.

May import measure and what that may import.
"""
