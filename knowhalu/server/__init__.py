"""HTTP doors to the library: the only place that knows status codes."""
