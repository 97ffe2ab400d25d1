"""Measurements on a host: its GPUs and problems, and attempts' use of disk, memory and processors."""
