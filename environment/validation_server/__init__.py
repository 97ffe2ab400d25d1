"""The validation server: checks whether an agent's submission has the right form, without scoring it.

It runs outside the agent's sandbox, on public data alone: it needs no answers. The process that listens stays small;
each check runs in a limited child process.
"""
