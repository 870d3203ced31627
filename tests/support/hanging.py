"""How long a test waits for what comes at once, in seconds: only a real hang takes longer, however busy the machine is."""

HANG = 120
