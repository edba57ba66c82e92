"""The knowledge base: finds folders and entries, and saves changes. Judges nobody and speaks no protocol."""
