"""The baseline agent: detects the kind of problem, and improves its submission in stages."""
