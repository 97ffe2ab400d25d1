"""The run screen: one module a pane, the header above them, and the summary beside them and beside lists of runs."""
