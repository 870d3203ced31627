"""A set of what was seen before, small enough for tens of millions of ids: 16 bytes of hash each, in one table."""

import hashlib
from array import array


class Seen:
    """Remembers texts by a hash of 128 bits, in 24 to 48 bytes each."""

    def __init__(self) -> None:
        self._count, self._mask = 0, 1023
        self._table = array("Q", bytes(16 * 1024))

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Remember a text; tell whether it is new."""
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        high, low = int.from_bytes(digest[:8]) or 1, int.from_bytes(digest[8:])
        if (at := self._place(high, low)) is None:
            return False
        self._table[at], self._table[at + 1] = high, low
        self._count += 1
        if 3 * self._count > 2 * self._mask:
            self._grow()
        return True

    def _place(self, high: int, low: int) -> int | None:
        """Return the free place for a hash; None where it is in the table."""
        slot = low & self._mask
        while found := self._table[2 * slot]:
            if found == high and self._table[2 * slot + 1] == low:
                return None
            slot = (slot + 1) & self._mask
        return 2 * slot

    def _grow(self) -> None:
        old = self._table
        self._mask = 2 * self._mask + 1
        self._table = array("Q", bytes(16)) * (self._mask + 1)
        for i in range(0, len(old), 2):
            if old[i] and (at := self._place(old[i], old[i + 1])) is not None:
                self._table[at], self._table[at + 1] = old[i], old[i + 1]
