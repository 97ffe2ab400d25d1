"""Commands about hosts: what this one has, its engine, its images, and where else runs can be placed."""
