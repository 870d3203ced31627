"""Language models: behind a server or in this process, with a cache of replies on disk."""
