"""Competitions about water, brought as a package."""
