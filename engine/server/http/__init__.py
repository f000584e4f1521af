"""The HTTP server of the resident engine, for clients that speak llama.cpp's or OpenAI's HTTP. Needs `dg-lsp[http]`."""
