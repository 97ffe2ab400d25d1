"""Building blocks of competitions: splits, tables, files, archives, checks and metrics.

A task imports the modules it needs (`from mlebench_console.competitions.kit import checks, tables`); heavy libraries
are imported by those modules only.
"""
