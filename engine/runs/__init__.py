"""Runs: the protocol of their directories, when they start, how they end; the host's side is `runner`."""
