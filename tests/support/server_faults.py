"""Faults that strike a request at the fake server: each takes the place of its answer."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime


def status(code, payload=None, headers=()):
    async def fault(exchange):
        said = {"error": {"message": "the server is not well", "code": code}} if payload is None else payload
        await exchange.send(code, said, headers)

    return fault


def sent(change):
    """Answer with the right payload after `change(payload, choice)`; what it returns, if anything, is sent instead."""

    async def fault(exchange):
        code, payload = exchange.server.reply(exchange)
        assert code == 200, payload
        other = change(payload, payload["choices"][0])
        await exchange.send(200, payload if other is None else other)

    return fault


def said(text, *, logprobs=False, finish="stop", tokens=0):
    """Answer with another text, of so many tokens; 0 where the server does not count them."""

    def change(payload, choice):
        choice["message"]["content"] = text
        choice["finish_reason"] = finish
        payload["usage"]["completion_tokens"] = tokens
        if not logprobs:
            choice["logprobs"] = None

    return sent(change)


async def reset_in_the_middle(exchange):
    raw = json.dumps(exchange.server.reply(exchange)[1]).encode()
    await exchange.send(200, raw[: len(raw) // 2], length=len(raw))
    exchange.abort()


async def closed_without_a_word(exchange):
    exchange.writer.close()
    raise ConnectionError


async def closed_after_the_answer(exchange):
    """The server lets go of a connection that it promised to keep."""
    await exchange.answer()
    exchange.abort()


async def never(exchange):
    await asyncio.Event().wait()


async def headers_only(exchange):
    await exchange.send(200, b"", length=1000)
    await asyncio.Event().wait()


def after_others(count):
    """Answer only when so many other requests were answered: the slow one holds nobody up."""

    async def fault(exchange):
        server = exchange.server
        while len([r for r in server.requests if r is not exchange]) < count:
            await asyncio.sleep(0)
        await exchange.answer()

    return fault


async def piece_by_piece(exchange):
    """A chunked body in many small parts."""
    raw = json.dumps(exchange.server.reply(exchange)[1]).encode()
    exchange.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for start in range(0, len(raw), 50):
        part = raw[start : start + 50]
        exchange.writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        await exchange.writer.drain()
    exchange.writer.write(b"0\r\n\r\n")
    await exchange.writer.drain()


def cut_json(payload, choice):
    return json.dumps(payload).encode()[:-40]


def no_usage(payload, choice):
    del payload["usage"]


def nan_logprobs(payload, choice):
    for entry in (choice["logprobs"] or {}).get("content", []):
        entry["logprob"] = float("nan")


def no_logprobs(payload, choice):
    choice["logprobs"] = None


def no_choices(payload, choice):
    payload["choices"] = []


def null_content(payload, choice):
    choice["message"]["content"] = None


def only_thoughts(payload, choice):
    choice["message"] |= {"content": None, "reasoning_content": "Let me think."}


def wrong_role(payload, choice):
    choice["message"]["role"] = "user"


def in_seconds(seconds):
    return f"Retry-After: {seconds}"


class Standing(datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 7, 1, 12, tzinfo=tz)


def at_a_date(seconds):
    """Ask to wait so many seconds by the standing clock."""
    return f"Retry-After: {format_datetime(Standing.now(UTC) + timedelta(seconds=seconds), usegmt=True)}"
