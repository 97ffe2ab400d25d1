"""What is measured on a host: its GPUs and problems, and what attempts use of its disk, memory and processors."""
