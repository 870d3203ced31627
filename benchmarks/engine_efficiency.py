#!/usr/bin/env python
"""Overhead of the engine: 64 checks in flight against a loopback server that answers in 50 ms, compared with the ideal time.

The server is a process of its own. The ideal is what a server with a place for every check would need: rounds x 50 ms. The
constant overhead at the beginning and end of a run (the list of models is requested, connections are opened) is separated from
the overhead of each request by a run of half the length.

The server must answer after 50 ms exactly, so its replies are built once and it waits to the microsecond. With the default
selector, which waits whole milliseconds, it answered after 51 ms and many checks at once.
"""

import asyncio
import json
import multiprocessing
import os
import re
import selectors
import statistics
import time
from multiprocessing.connection import Connection

from common import make_parser, write_results

from knowhalu.engine.engine import Backends, Engine
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Conversation, Generate
from knowhalu.results import Verdict
from knowhalu.types import Label, Sample, Task

SECONDS = 0.050
LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)


def answer(payload: dict[str, object]) -> bytes:
    """Return the bytes of a reply."""
    body = json.dumps(payload).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


CARDS = answer({"data": [{"id": "m", "owned_by": "vllm"}]})
REPLY = answer({
    "choices": [{"message": {"role": "assistant", "content": "I read it."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 800}},
})  # fmt: skip


class Answering(asyncio.Protocol):
    """One connection: every request is answered 50 ms after its last byte."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.data, self.whole = transport, b"", 0

    def data_received(self, data: bytes) -> None:
        """Collect a part of a request, and answer when it is complete."""
        self.data += data
        if not self.whole and (end := self.data.find(b"\r\n\r\n")) > 0:
            length = LENGTH.search(self.data, 0, end)
            self.whole = end + 4 + (int(length[1]) if length else 0)
        if self.whole and len(self.data) >= self.whole:
            reply = CARDS if self.data.startswith(b"GET") else REPLY
            self.data, self.whole = self.data[self.whole :], 0
            asyncio.get_running_loop().call_later(SECONDS, self.transport.write, reply)


def serve(connection: Connection) -> None:
    """Serve until killed; send the port through the connection."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(main())


class Rounds:
    """A check that generates `rounds` times, each time with a longer prompt, as KnowHalu does."""

    name = "rounds"

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Ask and decide."""
        prompt = "A fixed instruction with demonstrations. " * 80 + sample.response
        for _ in range(self.rounds):
            prompt += (yield Generate(prompt)).text
        return Verdict(id=sample.id, task=Task.CLAIM, method=self.name, label=Label.CORRECT, hallucinated=False, kind=None,
                       probability=0.0, reason="")  # fmt: skip


def run(port: int, checks: int, rounds: int, in_flight: int) -> float:
    """Return the seconds of one run."""
    backend = ServerBackend(LLMOptions(url=f"http://127.0.0.1:{port}/v1", concurrency=in_flight))
    engine = Engine(Rounds(rounds), Backends(generate=backend), in_flight=in_flight)
    start = time.perf_counter()
    outcomes = list(engine.run(Sample(id=str(n), response=f"claim {n}") for n in range(checks)))
    seconds = time.perf_counter() - start
    if not all(isinstance(o, Verdict) for o in outcomes):
        raise SystemExit(f"a check failed: {next(o for o in outcomes if not isinstance(o, Verdict))}")
    return seconds


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "engine_efficiency.json")
    parser.add_argument("--checks", type=int, default=1920)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    load = os.getloadavg()[0]
    run(port, args.in_flight, 1, args.in_flight)  # imports are not the engine's
    halves = [run(port, args.checks // 2, args.rounds, args.in_flight) for _ in range(args.repeats)]
    before = time.process_time()
    measured = [run(port, args.checks, args.rounds, args.in_flight) for _ in range(args.repeats)]
    own = (time.process_time() - before) / (args.repeats * args.checks * args.rounds)
    server.terminate()
    ideal = args.checks * args.rounds / args.in_flight * SECONDS
    half, whole = statistics.median(halves), statistics.median(measured)
    result = {
        "checks": args.checks, "requests": args.checks * args.rounds, "in_flight": args.in_flight, "server_seconds": SECONDS,
        "ideal_seconds": ideal, "seconds": measured, "efficiency": ideal / whole, "best_efficiency": ideal / min(measured),
        "half_seconds": halves, "constant_seconds": 2 * half - whole, "steady_efficiency": ideal / 2 / (whole - half),
        "own_seconds_per_request": own, "processors": os.cpu_count(), "load_before": load,
    }  # fmt: skip
    write_results(args.out, result)
    print(f"{result['efficiency']:.1%} of the ideal ({ideal:.2f} s; measured {', '.join(f'{s:.2f}' for s in measured)})")
    print(f"{result['steady_efficiency']:.1%} once it runs; beginning and end take {result['constant_seconds']:.2f} s")
    print(f"{own * 1000:.2f} ms of a processor for each request; the machine's load was {load:.1f} before")


if __name__ == "__main__":
    main()
