"""Commands about datasets: `prepare`, the group `datasets`, and what both ask of an engine."""
