"""The proof of the store: it never loses, tears or doubles a save. docs/explanation/store.md tells how it works."""
