"""The app of identities, grants, tokens and their audit."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "access"
    verbose_name = "Access"
