"""Registering an OAuth client: anybody may, so that it means nothing until a person allows it in."""

from collections.abc import Sequence

from oauth2_provider.models import Application


def register_client(*, name: str, redirect_uris: Sequence[str]) -> Application:
    """A public client, known by its id alone. ``name`` is what it calls itself; the addresses are checked before."""
    return Application.objects.create(
        name=name,
        redirect_uris=" ".join(redirect_uris),
        client_type=Application.CLIENT_PUBLIC,
        client_secret="",
        hash_client_secret=False,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        registration_source=Application.RegistrationSource.DCR,
    )
