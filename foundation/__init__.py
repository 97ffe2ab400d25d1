"""The floor that every other package stands on; it imports none of them.

It holds only what the benchmark, the state, the engine and the console must agree on:
how an error is told (`problems`), how a file is written or read without trusting anyone
(`files`, `locks`), and what the time is (`clock`).
"""
