"""The reader's JSON API: what the tools of mcpapi tell, over GET, for scripts and pages. It changes nothing."""
