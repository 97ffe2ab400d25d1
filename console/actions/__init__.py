"""What can be done to runs, sweeps and datasets: to which it applies, what is asked first, which request is filed.

Keys, the `:` command line and commands use the same actions; who draws the question and files the request is theirs.
"""
