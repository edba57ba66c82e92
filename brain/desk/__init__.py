"""The administrators' desk: Django's admin, in which every list only shows and every change goes through a service."""
