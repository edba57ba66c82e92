"""The app of the agents' door."""

from django.apps import AppConfig


class McpApiConfig(AppConfig):
    name = "mcpapi"
    verbose_name = "MCP"
