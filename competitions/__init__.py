"""The benchmark: the registry, the kit that tasks are composed of, and one folder per competition.

Importing this package imports nothing else. `competitions.registry` finds competitions,
`competitions.judging` runs a task's grader; `engine.datasets` runs its `prepare`.
"""
