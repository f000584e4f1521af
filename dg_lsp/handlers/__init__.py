"""One handler for each request and notification: it converts, awaits and converts back. `app/routes.py` lists them.
`server.py` puts together what they act on."""
