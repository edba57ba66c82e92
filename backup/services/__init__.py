"""What callers can do with the backup: one file for each operation, named as people say it."""
