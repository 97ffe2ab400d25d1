"""The floor that every other package stands on; it imports none of them.

It holds only what the packages above must agree on: errors (`problems`), files that are written whole and read without
trust (`files`, `jsonlines`), `locks`, the time (`clock`), worker processes (`workers`), logs of background processes
(`daemon_log`), and what a host is made of (`hardware`).
"""
