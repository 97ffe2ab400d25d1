"""Integrity: was a score earned? Detectors examine runs and show findings; people decide what they mean.

`material` is the input of detectors, `results` stores their findings; `windows` selects the text that a model reads,
`judge` asks the model questions about it, `endpoint` sends the calls. Nothing here excludes a run.
"""
