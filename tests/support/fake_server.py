"""A faithful small OpenAI-compatible server on loopback, in a thread: real sockets, a tiny model, and faults on demand."""

import asyncio
import json
import math
import os
import re
import threading
from contextlib import contextmanager

from tests.support.hanging import HANG
from tests.support.tiny_model import END, TinyModel, number_of_token, token_of_number, tokenize

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "ollama": "library", "plain": "someone"}
BLOCK = 16


class FakeServer:
    """`kind` decides which dialect it understands; `strike` makes requests that hold a text meet faults, in order.

    `models` answers in place of the list of models. With `named`, a vLLM server tokenizes and returns the log-probabilities of
    named tokens; without, it ignores those fields, as older ones do. A server that has stopped can run again, at the same port.
    """

    name = "tiny"
    context = 4000

    def __init__(
        self, model=None, *, kind="vllm", names=None, template=True, logprobs=True, top=20, all_tokens=False, slots=0,
        root="/models", named=True,
    ):  # fmt: skip
        self.model, self.kind, self.template = model or TinyModel(), kind, template
        self.names, self.logprobs, self.top, self.all_tokens = names or [self.name], logprobs, top, all_tokens
        self.named = named and kind == "vllm"
        self.root, self.slots, self.port = root, [[] for _ in range(slots)], 0
        self.requests, self.connections, self.models = [], 0, None
        self._seen, self._faults = set(), {}

    def strike(self, marker, *faults, forever=False):
        self._faults[marker] = [list(faults), forever]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    # --- HTTP -------------------------------------------------------------------------------------------------------
    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                method, path, _ = first.split(" ")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines if line)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                exchange = Exchange(self, method, path, headers, json.loads(raw) if raw else {}, writer)
                self.requests.append(exchange)
                lists = self.models if path == "/v1/models" else None
                await (lists or self._fault(raw.decode()) or Exchange.answer)(exchange)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _fault(self, raw):
        for marker, entry in self._faults.items():
            if json.dumps(marker)[1:-1] in raw and entry[0]:
                return entry[0][0] if entry[1] and len(entry[0]) == 1 else entry[0].pop(0)
        return None

    # --- the API ----------------------------------------------------------------------------------------------------
    def reply(self, exchange):
        """Return status and JSON."""
        path, body = exchange.path, exchange.body
        if answer := self._about(path) or (self.named and answer_about_tokens(path, body)):
            return answer
        if path not in ("/v1/chat/completions", "/v1/completions"):
            return 404, {"detail": "Not Found"}
        if body.get("model") not in self.names:
            return refusal(404, f"The model `{body.get('model')}` does not exist.")
        if not self.logprobs and body.get("logprobs") and self.kind != "plain":
            return refusal(400, "logprobs is not supported by this server")
        if (body.get("top_logprobs") or 0) > self.top:
            return refusal(400, f"top_logprobs must be at most {self.top}")
        chat = path == "/v1/chat/completions"
        if chat and not self.template:
            return refusal(400, "default chat template is no longer allowed, so you must provide a chat template")
        prompt, begun = self._texts(body) if chat else last_line_apart(body["prompt"])
        tokens = tokenize(prompt + begun)
        if len(tokens) + body["max_tokens"] > self.context:
            asked = f"However, you requested {len(tokens)} tokens in the messages"
            return refusal(400, f"This model's maximum context length is {self.context} tokens. {asked}.")
        text, steps, reason = self.model.write(
            prompt, begun, max_tokens=body["max_tokens"], stop=body.get("stop") or (), allowed=self._allowed(body),
            tokens=[token_of_number(n) for n in body.get("allowed_token_ids") or ()],
            temperature=body["temperature"], seed=body.get("seed", 0),
        )  # fmt: skip
        usage = {"prompt_tokens": len(tokens), "completion_tokens": len(steps),
                 "prompt_tokens_details": {"cached_tokens": self._cached(tokens, body.get("id_slot"))}}  # fmt: skip
        choice = {"index": 0, "finish_reason": reason, "logprobs": self._logprobs(body, steps, chat)}
        if chat and self.kind == "llamacpp" and body["messages"][-1]["role"] == "assistant":
            text = body["messages"][-1]["content"] + text  # but no log-probabilities of it
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        return 200, {"id": "1", "model": self.name, "choices": [choice], "usage": usage}

    def _about(self, path):
        if path == "/v1/models":
            cards = [{"id": n, "object": "model", "owned_by": OWNERS[self.kind], "root": f"{self.root}/{n}"} for n in self.names]
            return 200, {"object": "list", "data": cards}
        if path == "/props" and self.slots:
            return 200, {"total_slots": len(self.slots), "model_path": f"{self.root}/tiny.gguf", "build_info": "b1-0000000"}
        return None

    def _texts(self, body):
        """Apply the chat template: only a server that continues by itself, or was told to, leaves the last message open."""
        *said, last = body["messages"]
        told = body.get("continue_final_message") and body.get("add_generation_prompt") is False
        goes_on = last["role"] == "assistant" and (told or self.kind in ("llamacpp", "ollama"))
        closed = said if goes_on else [*said, last]
        prompt = "".join(f"<{m['role']}>{m['content']}</>" for m in closed) + "<assistant>"
        return prompt, last["content"].strip() if goes_on else ""  # as many templates do

    def _allowed(self, body):
        match self.kind:
            case "vllm":
                return tuple((body.get("structured_outputs") or {}).get("choice", ()))
            case "llamacpp" if "grammar" in body:
                return tuple(json.loads(f'"{s}"') for s in re.findall(r'"((?:[^"\\]|\\.)*)"', body["grammar"]))
            case "sglang" if "regex" in body:
                parts = re.split(r"(?<!\\)\|", body["regex"][1:-1])
                return tuple(re.sub(r"\\(.)", r"\1", p.replace(r"\n", "\n")) for p in parts)
        return ()

    def _cached(self, tokens, slot):
        if self.slots:  # like llama.cpp: a slot holds its last prompt; without a number, the slot with most of the prompt is used
            shared = [len(os.path.commonprefix([held, tokens])) for held in self.slots]
            number = shared.index(max(shared)) if slot in (None, -1) else slot
            self.slots[number] = tokens
            return shared[number]
        blocks = ["".join(tokens[: i + BLOCK]) for i in range(0, len(tokens) - BLOCK, BLOCK)]
        known = sum(1 for b in blocks if b in self._seen)
        self._seen.update(blocks)
        return known * BLOCK

    def _logprobs(self, body, steps, chat):
        wanted = body.get("logprobs")
        if wanted is None or wanted is False or not self.logprobs:
            return None
        count = body.get("top_logprobs", 0) if chat else int(wanted)
        count = None if self.all_tokens else count
        found = [(token, log(after[token]), best(after, count)) for token, after in steps]
        if self.named and (
            named := body.get("logprob_token_ids")
        ):  # before the allowed tokens are picked out, as in raw_logprobs
            names = [token_of_number(n) for n in named]
            found = [(t, log(after[t]), [(n, log(after.get(n, 0.0))) for n in dict.fromkeys([t, *names])]) for t, after in steps]
        if self.named and body.get("return_tokens_as_token_ids"):
            found = [(numbered(t), p, [(numbered(n), q) for n, q in top]) for t, p, top in found]
        if not chat:
            return {"tokens": [f[0] for f in found], "token_logprobs": [f[1] for f in found],
                    "top_logprobs": [dict(f[2]) for f in found]}  # fmt: skip
        return {"content": [{"token": t, "logprob": p, "top_logprobs": [{"token": a, "logprob": b} for a, b in top]}
                            for t, p, top in found]}  # fmt: skip


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, server, method, path, headers, body, writer):
        self.server, self.method, self.path, self.headers, self.body, self.writer = server, method, path, headers, body, writer

    async def answer(self):
        await self.send(*self.server.reply(self))

    async def send(self, status, payload, headers=(), *, length=None):
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(raw) if length is None else length}", *headers]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + raw)
        await self.writer.drain()

    def abort(self):
        self.writer.transport.abort()
        raise ConnectionError


def numbered(token):
    return f"token_id:{number_of_token(token)}"


def answer_about_tokens(path, body):
    """Tokenize, or refuse the tokens that a request names, in vLLM's words; None for anything else."""
    if path == "/tokenize":
        tokens = [number_of_token(token) for token in tokenize(body["prompt"])]
        return 200, {"count": len(tokens), "max_model_len": FakeServer.context, "tokens": tokens, "token_strs": None}
    if body.get("logprob_token_ids") and (body.get("logprobs") is None or body["logprobs"] is False):
        return refusal(400, "when using `logprob_token_ids`, `logprobs` must be set.")
    if (count := len(body.get("logprob_token_ids") or ())) > 128:
        return refusal(400, f"Requested logprob_token_ids of length {count}, which is greater than max allowed: 128")
    return refusal(400, "allowed_token_ids is not None and empty!") if body.get("allowed_token_ids") == [] else None


def last_line_apart(text):
    """Split a text for completion where the tests' prompts end and their begun replies start."""
    prompt, newline, begun = text.rpartition("\n")
    return prompt + newline, begun


def refusal(status, message):
    return status, {"error": {"message": message, "type": "BadRequestError", "code": status}}


def log(p):
    return math.log(p) if p > 0 else -9999.0


def best(after, count):
    ranked = sorted(after.items(), key=lambda item: -item[1])[:count]
    return [("</s>" if token == END else token, log(p)) for token, p in ranked]


@contextmanager
def running(server):
    """Serve in a thread until the end of the block."""
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def serve():
        server.stopped = asyncio.Event()
        listener = await asyncio.start_server(server._serve, "127.0.0.1", server.port, limit=2**24)
        server.port = listener.sockets[0].getsockname()[1]
        started.set()
        await server.stopped.wait()
        listener.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(HANG)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(server.stopped.set)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
