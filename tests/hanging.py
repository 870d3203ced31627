"""How long a test waits for what comes at once: only a real hang takes longer, however busy the machine is."""

HANG = 120.0
