"""Notifications: finding what an operator may want to know at once, and sending it to services.

The engine notifies services (webhooks, Slack, mail), so that it happens once only, and with no console open too; an
open console notifies through its own terminal.
"""
