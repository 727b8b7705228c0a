"""Sends notifications: CloudEvents over HTTPS to one address, off unless it is set."""
