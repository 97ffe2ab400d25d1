"""What the benchmark consists of: the registry, the kit its tasks are composed of, one folder per competition.

Importing this package costs nothing; ask `competitions.registry` for a competition,
`competitions.preparing` and `competitions.judging` to run its task.
"""
