"""The baseline agent: finds out what kind of problem it has, and improves its submission in stages."""
