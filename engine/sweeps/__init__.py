"""Sweeps before and beside their runs: what was asked for, what it will take, and their coming and going."""
