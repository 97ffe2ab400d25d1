"""The validation server: tells an agent whether its submission has the right form, and never how good it is.

It runs where the agent is not, on public data alone: it needs no answers. The process that listens stays small;
each check happens in a limited child process that ends with it.
"""
