"""The state of sweeps, runs and datasets in SQLite: the only package with SQL in it.

`database` opens it (one writer, the engine; any number of readers), `records` are what it returns,
`lifecycle` defines which state of a run may follow which, and only `transitions` changes it.
`sweeps`, `runs`, `submissions`, `datasets`, `requests`, `events`, `experiments` and `integrity`
read and write one concept each; `usage` is what attempts have used.
"""
