"""Baselines: judges by one prompt, SelfCheckGPT, WikiChat, and rules that know nothing of truth."""
