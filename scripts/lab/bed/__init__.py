"""Hosts with link speeds of their own on one machine, and what happens to their links."""
