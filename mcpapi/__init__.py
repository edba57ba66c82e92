"""The agents' door: MCP over Streamable HTTP in both eras, over one dispatcher that knows neither."""
