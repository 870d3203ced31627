"""Where evidence comes from: indexes on disk, a sample's own documents, memory."""
