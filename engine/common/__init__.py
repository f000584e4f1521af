"""Shared by all packages: requests and answers, errors, lossless texts, and what goes over the wire."""
