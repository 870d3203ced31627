"""The name tables: which class stands behind a name in the settings. Classes are imported when first asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from knowhalu.errors import SettingsError

METHODS: Mapping[str, str] = {
    "knowhalu": "knowhalu.methods.knowhalu:KnowHalu",
}
REASONERS: Mapping[str, str] = {
    "encoder": "knowhalu.reasoners.encoder:EncoderReasoner",
    "llm": "knowhalu.reasoners.llm:LLMReasoner",
}
LLMS: Mapping[str, str] = {
    "server": "knowhalu.llm.server:Server",
    "transformers": "knowhalu.llm.transformers:Transformers",
    "vllm": "knowhalu.llm.vllm:VLLM",
}
TABLES: Mapping[str, Mapping[str, str]] = {"method": METHODS, "reasoner": REASONERS, "llm": LLMS}


def resolve(table: str, name: str) -> Any:
    """Return the class that a name stands for; raises SettingsError with the nearest known names."""
    known = TABLES[table]
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"unknown {table} {name!r}.{hint} Known: {', '.join(sorted(known))}")
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)
