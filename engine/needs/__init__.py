"""Needs: why something waits, how a sweep stands and what needs a person, computed once for all who show it."""
