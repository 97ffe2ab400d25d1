"""An agent's host: its GPUs and problems, its store of copies, and attempts' use of disk, memory and processors."""
