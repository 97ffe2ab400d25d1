"""Widgets and drawing functions that several screens share; they draw their arguments and query nothing."""
