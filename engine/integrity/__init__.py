"""Integrity: was a score earned? Detectors look at runs and show what they find; people decide what it means.

`material` is what they look at, `results` how what they find is kept; `windows` is what of it a model
reads, `judge` what that is asked, `endpoint` how. Nothing here excludes a run.
"""
