"""The agents' addresses. Both spellings are the endpoint itself: a redirect would lose the body or the credential."""

from django.urls import path

from mcpapi.http import BrainMCPView

urlpatterns = [
    path("mcp", BrainMCPView.as_view(), name="mcp"),
    path("mcp/", BrainMCPView.as_view()),
]
