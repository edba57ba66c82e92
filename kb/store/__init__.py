"""The store: one log that is the truth, one tree of plain Markdown that shows it.

How a save becomes durable, visible and recoverable is described in docs/explanation/store.md. The rest of the
code sees a ``ContentStore`` (content_store.py) and no files.
"""
