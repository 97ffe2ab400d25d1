"""Calling a person for what happens: what is news, whom to call how, and the engine's part in it; no screen.

Services (webhooks, Slack, mail) are called by the engine, so that it happens with no console open and once
only; a console that is open rings its own terminal.
"""
