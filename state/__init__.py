"""What is known, in SQLite: the only package that speaks SQL.

`database` opens it (one writer, the engine; any number of readers), `records` are what it gives
out, `lifecycle` says how a run may live and `transitions` is the only place where it does.
`sweeps`, `runs`, `submissions`, `datasets`, `requests`, `events`, `experiments` and `samples`
read and write one concept each.
"""
