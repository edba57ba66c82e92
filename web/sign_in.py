"""Signing in and out. Whatever is wrong with a name or password, the page says one and the same sentence."""

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    """The form. ``next`` is followed only to addresses of this origin."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Ends the session; POST alone, so that no link can do it."""
