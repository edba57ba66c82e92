"""Diffs and exact edits: read strictly, placed where they fit and nowhere else, or refused with what to repair.

Pure: texts in, texts out. Nothing here knows of entries, people or files. A line ends at LF and nowhere else.
"""
