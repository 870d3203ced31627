"""Serve a retriever over HTTP."""
