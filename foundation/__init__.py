"""Modules that all other packages use; it imports none of them.

It contains only what the other packages must share: errors (`problems`), files that are written atomically and read
without trust (`files`, `jsonlines`), `locks`, the time (`clock`), worker processes (`workers`), logs of background
processes (`daemon_log`), the record of a host's hardware (`hardware`), and what model calls may use (`amounts`).
"""
