"""Studies: experiments as data, run anywhere, killed and resumed without loss.

Start with `spec` (what a study is) and `runner` (how it is run). A study is checked by `settings`
and `toml_tables`, with `mistakes` for what is wrong where. `work` is the pure function that every
machine calls; `ledger` is the results folder, with `manifest` and `chunk_file`; `executors` and
`on_dask` say where it runs, `timing` how long. `summary` (with `exact_rewards`) and `export` read
results, `paired_differences` compares learners, `report` makes pages.

May import measure and what that may import.
"""
