"""An LLM backend: a server with one endpoint, which continues several texts."""

import json
from urllib.request import urlopen

from knowhalu.extend import BackendError, Completion, Generate, LLMBackend, Record


class PlainServer(LLMBackend):
    name = "plain-server"

    class Options(Record):
        url: str = "http://127.0.0.1:9000"

    def answer_many(self, requests: list[Generate]) -> list[Completion]:
        try:
            with urlopen(self.options.url, json.dumps([vars(r) for r in requests]).encode(), self.llm.timeout) as reply:
                return [Completion(**fields) for fields in json.load(reply)]
        except (OSError, ValueError, TypeError) as error:
            raise BackendError("generate", f"{self.options.url}: no usable reply ({error}). Is the server up?") from error
