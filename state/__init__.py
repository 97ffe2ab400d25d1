"""The state of sweeps, runs and datasets in SQLite; the only package that contains SQL.

`database` opens it (one writer, the engine; any number of readers), `records` are the types that it returns,
`lifecycle` defines which state of a run may follow which, and only `transitions` changes it.
`sweeps`, `runs`, `submissions`, `datasets`, `requests`, `events`, `experiments` and `integrity`
read and write one concept each; `usage` records the resource usage of attempts.
"""
