"""What callers can do with folders and entries: one file for each operation, named as people say it."""
