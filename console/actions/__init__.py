"""Actions on runs, sweeps and datasets: what they apply to, the question asked first, and the requests to the engine.

Keys, the `:` command line and commands share these actions; each caller shows the question and files the requests.
"""
