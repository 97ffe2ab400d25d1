"""Notifications: what an operator may want to know at once, and sending it to services; no screen.

Services (webhooks, Slack, mail) are notified by the engine, so that it happens with no console open and once
only; a console that is open notifies by its own terminal.
"""
