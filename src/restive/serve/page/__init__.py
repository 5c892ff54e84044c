"""The operator's page: made by the server, readable without scripts."""
