"""Choose the server, and the slot of a llama.cpp server, that answers a request.

A server caches the prompts that it has read. So a request goes to the server that has read most of its beginning, unless another
has clearly less to do. A llama.cpp server keeps one prompt in each of its slots: a request gets a slot that holds the fixed
beginning of its stage. The last slot with that of another stage is taken only where several requests would wait, and not while
requests of that stage wait. So a server with fewer slots than stages answers all requests of one stage before those of the next.

The number of concurrent requests to a server begins low, grows while replies come fast, and falls where the server refuses
requests (429, 503), lets one time out, or takes longer than half the timeout. With several servers, one that cannot be reached
or fails repeatedly gets no requests for a time that doubles, and is examined before it gets any again.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from knowhalu.io.http import NoConnection, NoReply, ServerBusy, TransientFault
from knowhalu.llm.framing import render_completion_prompt
from knowhalu.requests import Generate

CHUNK = 256
"""Characters of a prompt that are compared at once."""
MAX_CHUNKS = 8192
"""Chunks that a server without slots is taken to have cached: about 500,000 tokens."""
LOAD_SLACK = 0.25
"""A server with the beginning of a prompt is preferred if its share of used places is not above the least by more than this."""
FIRST_LIMIT = 8
"""Concurrent requests to a server of unknown capacity at first."""
CAREFUL_STEPS = 4
"""After a first refusal or timeout, the limit grows by one in this many rounds of replies."""
MAX_FAULTS = 3
"""Consecutive failed requests after which one of several servers is left out."""
MAX_PAUSE_SECONDS = 30.0
PATIENCE = 4
"""Requests that wait for each slot with their fixed beginning before a slot of another stage is taken."""
MAX_TURNS = 128
"""Requests of one stage that a slot answers in a row while others wait: as many as there are checks at once by default."""


class PromptPrefix(NamedTuple):
    """Hashes of the beginnings of a prompt, `CHUNK` characters apart, and that of the part that every sample shares."""

    chunks: tuple[int, ...]
    stage: int

    @classmethod
    def of(cls, request: Generate) -> "PromptPrefix":
        """Hash the beginnings of a request's text."""
        text = render_completion_prompt(request)
        fixed = len(text) - len(request.prefill) - len(request.prompt) + request.fixed
        chunks, chain = [], 0
        for end in range(CHUNK, len(text) + 1, CHUNK):
            chain = hash((chain, text[end - CHUNK : end]))
            chunks.append(chain)
        return cls(tuple(chunks), hash(text[:fixed]))


@dataclass(eq=False)
class Slot:
    """A slot of a llama.cpp server: the prompt that it holds, the order of its last use, and its uses by this stage in a row."""

    number: int
    chunks: tuple[int, ...] = ()
    stage: int | None = None
    used: int = 0
    turns: int = 0
    busy: bool = False

    def take(self, prefix: PromptPrefix, use: int) -> None:
        """Record that the slot gets a prompt."""
        self.turns = self.turns + 1 if prefix.stage == self.stage else 1
        self.chunks, self.stage, self.used, self.busy = prefix.chunks, prefix.stage, use, True

    def shared(self, prefix: PromptPrefix) -> int:
        """Return how many chunks of a prompt the slot holds."""
        pairs = zip(self.chunks, prefix.chunks, strict=False)
        return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(self.chunks), len(prefix.chunks)))


@dataclass(eq=False)
class Server:
    """What is known of one server: its load, what it can hold, and what it has cached."""

    url: str
    limit: float
    slots: list[Slot] = field(default_factory=list)
    cached: OrderedDict[int, None] = field(default_factory=OrderedDict)
    in_flight: int = 0
    cuts: int = 0
    faults: int = 0
    dropped: bool = False
    pause: float = 0.5
    back_at: float = 0.0

    @property
    def places(self) -> int:
        """Return how many requests the server may have at once."""
        return min(int(self.limit), len(self.slots)) if self.slots else int(self.limit)

    @property
    def load(self) -> float:
        """Return the share of its places that are used."""
        return self.in_flight / self.places

    def shared(self, prefix: PromptPrefix) -> int:
        """Return how many chunks of a prompt the server has read before."""
        return next((n for n, chunk in enumerate(prefix.chunks) if chunk not in self.cached), len(prefix.chunks))

    def remember(self, prefix: PromptPrefix) -> None:
        """Record the prompt as cached, in place of those used longest ago."""
        for chunk in reversed(prefix.chunks):  # the beginning of a prompt is forgotten last
            self.cached[chunk] = None
            self.cached.move_to_end(chunk)
        while len(self.cached) > MAX_CHUNKS:
            self.cached.popitem(last=False)

    def forget(self) -> None:
        """Forget the cached prompts of a server that may have been started again."""
        self.cached.clear()
        for slot in self.slots:
            slot.chunks, slot.stage = (), None


class Place(NamedTuple):
    """Where one request is sent; `probe`: the server was left out and has to be examined first."""

    server: Server
    slot: Slot | None
    probe: bool
    cuts: int
    full: bool


class Dispatcher:
    """Places at the servers, for the requests of one event loop; `slot_counts` has the slots of each server that has some."""

    def __init__(
        self,
        urls: Collection[str],
        concurrency: int,
        timeout: float,
        slot_counts: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.concurrency, self.timeout, self._slot_counts, self._clock = concurrency, timeout, slot_counts, clock
        self.servers = {url: Server(url, min(FIRST_LIMIT, concurrency)) for url in urls}
        self._waiting: Counter[int] = Counter()
        self._changed = asyncio.Event()
        self._uses = 0

    @asynccontextmanager
    async def place(self, prefix: PromptPrefix, tried: Collection[str] = ()) -> AsyncIterator[Place]:
        """Wait for a place at a server that is not in `tried`, and learn from how the block ends."""
        place = await self._wait(prefix, tried)
        start = self._clock()
        try:
            yield place
        except TransientFault as fault:
            self._leave(place)
            self._failed(place, fault)
            raise
        except BaseException:
            self._leave(place)
            raise
        else:
            self._leave(place)
            self._answered(place, self._clock() - start)
        finally:
            self._changed.set()  # wakes those that wait now
            self._changed.clear()

    def untried(self, tried: Collection[str]) -> bool:
        """Return whether a server that is not left out is not in `tried`."""
        return any(url not in tried and not server.dropped for url, server in self.servers.items())

    def drop(self, url: str, seconds: float | None = None) -> None:
        """Send one of several servers nothing for some seconds, or else for a time that doubles."""
        if len(self.servers) == 1:
            return
        server = self.servers[url]
        server.forget()
        if seconds is None:
            seconds = server.pause = min(2 * server.pause, MAX_PAUSE_SECONDS)
        server.dropped, server.back_at = True, self._clock() + seconds

    async def _wait(self, prefix: PromptPrefix, tried: Collection[str]) -> Place:
        while (found := self._pick(prefix, tried)) is None:
            self._waiting[prefix.stage] += 1
            try:
                await self._changed.wait()
            finally:
                self._waiting[prefix.stage] -= 1
        server, slot = found
        place = Place(server, slot, server.dropped, server.cuts, server.in_flight + 1 >= server.places)
        server.in_flight += 1
        if slot is None:
            server.remember(prefix)
        else:
            self._uses += 1
            slot.take(prefix, self._uses)
        return place

    def _candidates(self, tried: Collection[str]) -> list[Server]:
        """Return the servers to choose from; one that comes back gets one request until that is answered."""
        for server in self.servers.values():
            count = min(self._slot_counts.get(server.url, 0), self.concurrency)
            if count != len(server.slots):
                server.slots = [Slot(number) for number in range(count)]
                server.limit = float(count or min(FIRST_LIMIT, self.concurrency))
        untried = [s for s in self.servers.values() if s.url not in tried] or list(self.servers.values())
        if all(s.dropped for s in untried):
            return untried
        due = self._clock()
        return [s for s in untried if not s.dropped or (s.back_at <= due and not s.in_flight)]

    def _pick(self, prefix: PromptPrefix, tried: Collection[str]) -> tuple[Server, Slot | None] | None:
        candidates = self._candidates(tried)
        free = [s for s in candidates if s.in_flight < s.places]
        if not free:
            return None
        returning = [s for s in free if s.dropped]
        if returning and len(returning) < len(candidates):  # one request is enough to see whether it is back
            free = candidates = returning[:1]
        if any(s.slots for s in free):
            return self._pick_slot(prefix, candidates)
        least = min(s.load for s in free)
        near = [s for s in free if s.load <= least + LOAD_SLACK]
        return max(near, key=lambda s: (s.shared(prefix), -s.load)), None

    def _pick_slot(self, prefix: PromptPrefix, candidates: list[Server]) -> tuple[Server, Slot | None] | None:
        """Return a free slot with the beginning of this stage, or another one that its stage can do without."""
        places = [(server, slot) for server in candidates for slot in server.slots]
        free = [(server, slot) for server, slot in places if not slot.busy and server.in_flight < server.places]
        others_wait = self._waiting.total() > self._waiting[prefix.stage]
        homes = [(server, slot) for server, slot in free if slot.stage == prefix.stage]
        homes = [(server, slot) for server, slot in homes if slot.turns < MAX_TURNS or not others_wait]
        if homes:
            return max(homes, key=lambda place: (place[1].shared(prefix), -place[0].load))
        copies = Counter(slot.stage for _, slot in places)
        empty = [(server, slot) for server, slot in free if slot.stage is None]
        if empty:
            return min(empty, key=lambda place: place[0].load)
        # while requests of a slot's stage wait, the slot is theirs: each change of stage costs a whole prompt
        idle = [(server, slot) for server, slot in free if not self._waiting[slot.stage or 0] or slot.turns >= MAX_TURNS]
        if copies[prefix.stage] and self._waiting[prefix.stage] < PATIENCE * copies[prefix.stage]:
            idle = [(server, slot) for server, slot in idle if copies[slot.stage] > 1]
        return min(idle, key=lambda place: (copies[place[1].stage] == 1, place[1].used), default=None)

    def _leave(self, place: Place) -> None:
        place.server.in_flight -= 1
        if place.slot:
            place.slot.busy = False

    def _answered(self, place: Place, seconds: float) -> None:
        server = place.server
        server.faults, server.pause = 0, 0.5
        if place.probe:
            server.dropped = False
        if seconds > self.timeout / 2:
            self._halve(place)
        elif place.full and seconds < self.timeout / 4:
            step = 1.0 if not server.cuts else 1.0 / (CAREFUL_STEPS * server.limit)
            server.limit = min(server.limit + step, float(len(server.slots) or self.concurrency))

    def _failed(self, place: Place, fault: TransientFault) -> None:
        server = place.server
        if isinstance(fault, ServerBusy):
            # the requests that it has not refused are those that it can hold
            server.limit = max(1.0, min(server.limit, float(server.in_flight)))
            server.cuts += 1
            if fault.wait is not None:
                self.drop(server.url, fault.wait)
            if fault.wait is not None or fault.status == 429:  # it works, and has enough to do
                return
        if isinstance(fault, NoReply):
            self._halve(place)
        server.faults += 1
        if isinstance(fault, NoConnection) or place.probe or server.faults >= MAX_FAULTS:
            self.drop(server.url)

    def _halve(self, place: Place) -> None:
        """Halve the limit, once for all requests that were sent under it."""
        if place.cuts == place.server.cuts:
            place.server.limit = max(1.0, place.server.limit / 2)
            place.server.cuts += 1
