"""Literal search: a pack of texts that is scanned, an overlay of what changed since, the live file that decides.

The pack and the overlay only say where to look. Nothing is returned that the entry as it stands does not hold.
"""
