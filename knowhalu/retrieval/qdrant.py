"""Where an index outgrows one machine: dense search in a Qdrant cluster, through its own client (extra `qdrant`).

Qdrant was chosen since its open-source server shards and replicates a collection over many machines, and since the same
client has an engine in memory (`:memory:`), with which the tests run. The client's other local mode, a folder, unpickles what
lies there and is refused.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from knowhalu.errors import BackendError, IndexFormatError, InputError, MissingExtra
from knowhalu.index.late_part import passage_text
from knowhalu.index.passages import Passages
from knowhalu.index.protocols import Embedder, check_k
from knowhalu.types import Passage

STAGE = "retrieval"
POINTS_PER_CALL = 256
IN_MEMORY_URL = ":memory:"


def _import_qdrant() -> Any:
    try:
        import qdrant_client
    except ImportError as error:
        raise MissingExtra("qdrant-client", "qdrant") from error
    return qdrant_client


class QdrantRetriever:
    """Search a collection that `fill_collection` made; its metadata name the embedder, and another one is refused."""

    def __init__(self, client: Any, collection: str, embedder: Embedder) -> None:
        self.client, self.collection, self.embedder = client, collection, embedder

    @classmethod
    def connect(cls, url: str, collection: str, embedder: Embedder, *, timeout: float = 30.0) -> "QdrantRetriever":
        """Open a collection of a server such as `http://127.0.0.1:6333`.

        Raises InputError where the address is none, BackendError where nobody answers, and IndexFormatError where the
        collection is missing or was made by another embedder.
        """
        found = cls(_open_client(url, timeout), collection, embedder)
        found.check()
        return found

    def check(self) -> None:
        """Raise IndexFormatError unless the collection is there and was made by the embedder."""
        if not self._ask(self.client.collection_exists, self.collection):
            raise IndexFormatError(
                f"the collection {self.collection!r} is not there. Fill it first (knowhalu.retrieval.qdrant.fill_collection)"
            )
        made = self._ask(self.client.get_collection, self.collection).config.metadata or {}
        if made.get("fingerprint") != self.embedder.fingerprint:
            raise IndexFormatError(
                f"the collection {self.collection!r} was filled with the embedder {made.get('embedder')!r}, not with "
                f"{self.embedder.name!r}. Open it with that one, or fill another collection"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query. The score is the cosine."""
        check_k(k)
        asked = [i for i, query in enumerate(queries) if query.strip()]
        found: list[list[Passage]] = [[] for _ in queries]
        if not asked:
            return found
        models = _import_qdrant().models
        vectors = self.embedder.encode([queries[i] for i in asked], query=True)
        requests = [models.QueryRequest(query=vector.tolist(), limit=k, with_payload=True) for vector in vectors]
        replies = self._ask(self.client.query_batch_points, self.collection, requests)
        for i, reply in zip(asked, replies, strict=True):
            # the engine may give equal scores in any order
            points = sorted(reply.points, key=lambda point: (-point.score, point.id))
            found[i] = [_passage(point.payload, point.score) for point in points]
        return found

    def _ask(self, call: Any, *given: Any) -> Any:
        try:
            return call(*given)
        except Exception as error:  # noqa: BLE001 - the client passes on whatever its two transports raise
            raise BackendError(STAGE, f"Qdrant did not answer ({type(error).__name__}: {error})") from error


def _open_client(url: str, timeout: float) -> Any:
    if url != IN_MEMORY_URL and not url.startswith(("http://", "https://")):
        raise InputError(f"{url!r} is no address of a Qdrant server. Give one such as http://127.0.0.1:6333")
    make = _import_qdrant().QdrantClient
    return (
        make(IN_MEMORY_URL) if url == IN_MEMORY_URL else make(url=url, timeout=max(1, round(timeout)), check_compatibility=False)
    )


def _passage(payload: dict[str, Any], score: float) -> Passage:
    try:
        return Passage.model_validate({**payload, "score": score})
    except ValueError as error:
        raise BackendError(
            STAGE, f"a point of the collection is no passage of ours ({error})", reply=str(payload)[:500]
        ) from error


def fill_collection(
    client: Any, collection: str, passages: Passages, embedder: Embedder, *, shards: int = 1, copies: int = 1
) -> int:
    """Make a collection of all passages and return how many it holds; embeds and sends them batch by batch.

    `shards` spread over the machines of a cluster, each held `copies` times. Filling again writes the same points again and
    takes out those of deleted passages, so it is repeated where it was cut off and after a change of the index.
    Raises IndexFormatError where the collection belongs to another embedder.
    """
    models = _import_qdrant().models
    found = QdrantRetriever(client, collection, embedder)
    if client.collection_exists(collection):
        found.check()
    else:
        client.create_collection(
            collection,
            vectors_config=models.VectorParams(size=embedder.dimension, distance=models.Distance.DOT),
            shard_number=shards,
            replication_factor=copies,
            metadata={"embedder": embedder.name, "fingerprint": embedder.fingerprint},
        )
    count = 0
    for rows in batch_rows(passages.live()):
        batch = [passages.get(row) for row in rows]
        vectors = embedder.encode([passage_text(p) for p in batch])
        points = [
            models.PointStruct(id=row, vector=vector.tolist(), payload=p.model_dump(mode="json", exclude={"score"}))
            for row, vector, p in zip(rows, vectors, batch, strict=True)
        ]
        client.upsert(collection, points=points, wait=True)
        count += len(rows)
    _delete_stale_points(client, collection, passages)
    return count


def batch_rows(rows: Iterator[int]) -> Iterator[list[int]]:
    """Yield rows in lists of `POINTS_PER_CALL`."""
    while batch := list(islice(rows, POINTS_PER_CALL)):
        yield batch


def _delete_stale_points(client: Any, collection: str, passages: Passages) -> None:
    """Take out the points of rows that are not there any more."""
    alive = np.zeros(len(passages), bool)
    for rows in batch_rows(passages.live()):
        alive[rows] = True
    gone, after = list[int](), None
    while True:
        points, after = client.scroll(collection, limit=10_000, offset=after, with_payload=False, with_vectors=False)
        gone += [point.id for point in points if not (point.id < len(alive) and alive[point.id])]
        if after is None:
            break
    for some in batch_rows(iter(gone)):
        client.delete(collection, points_selector=_import_qdrant().models.PointIdsList(points=some), wait=True)
