"""Dense search in a Qdrant cluster, for indexes larger than one machine, through its own client (extra `qdrant`).

The open-source server of Qdrant shards and replicates a collection over many machines, and the same client has an engine in
memory (`:memory:`), which the tests use. The other local mode of the client, a folder, unpickles its files and is refused.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from knowhalu.errors import BackendError, IndexFormatError, InputError, MissingExtra, hide_password
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
    """Search a collection written by `fill_collection`; its metadata name the embedder, and another one is refused."""

    def __init__(self, client: Any, collection: str, embedder: Embedder) -> None:
        self.client, self.collection, self.embedder = client, collection, embedder

    @classmethod
    def connect(cls, url: str, collection: str, embedder: Embedder, *, timeout: float = 30.0) -> "QdrantRetriever":
        """Open a collection of a server such as `http://127.0.0.1:6333`.

        Raises InputError for an invalid address, BackendError where the server does not answer, and IndexFormatError where the
        collection is missing or was filled with another embedder.
        """
        retriever = cls(_open_client(url, timeout), collection, embedder)
        retriever.check()
        return retriever

    def check(self) -> None:
        """Raise IndexFormatError unless the collection exists and was filled with the embedder."""
        if not self._call(self.client.collection_exists, self.collection):
            raise IndexFormatError(
                f"the collection {self.collection!r} does not exist. Fill it first (knowhalu.retrieval.qdrant.fill_collection)"
            )
        metadata = self._call(self.client.get_collection, self.collection).config.metadata or {}
        if metadata.get("fingerprint") != self.embedder.fingerprint:
            raise IndexFormatError(
                f"the collection {self.collection!r} was filled with the embedder {metadata.get('embedder')!r}, not with "
                f"{self.embedder.name!r}. Open it with that one, or fill another collection"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query. The score is the cosine."""
        check_k(k)
        numbers = [i for i, query in enumerate(queries) if query.strip()]
        results: list[list[Passage]] = [[] for _ in queries]
        if not numbers:
            return results
        models = _import_qdrant().models
        vectors = self.embedder.encode([queries[i] for i in numbers], query=True)
        requests = [models.QueryRequest(query=vector.tolist(), limit=k, with_payload=True) for vector in vectors]
        replies = self._call(self.client.query_batch_points, self.collection, requests)
        for i, reply in zip(numbers, replies, strict=True):
            # the engine returns ties in any order
            points = sorted(reply.points, key=lambda point: (-point.score, point.id))
            results[i] = [_passage(point.payload, point.score) for point in points]
        return results

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 - the client passes on the errors of two transports
            raise BackendError(STAGE, hide_password(f"Qdrant did not answer ({type(error).__name__}: {error})")) from error


def _open_client(url: str, timeout: float) -> Any:
    if url != IN_MEMORY_URL and not url.startswith(("http://", "https://")):
        raise InputError(f"{hide_password(url)!r} is not the address of a Qdrant server. Give one such as http://127.0.0.1:6333")
    make = _import_qdrant().QdrantClient
    return (
        make(IN_MEMORY_URL) if url == IN_MEMORY_URL else make(url=url, timeout=max(1, round(timeout)), check_compatibility=False)
    )


def _passage(payload: dict[str, Any], score: float) -> Passage:
    try:
        return Passage.model_validate({**payload, "score": score})
    except ValueError as error:
        raise BackendError(STAGE, f"a point of the collection is not a passage ({error})", reply=str(payload)[:500]) from error


def fill_collection(
    client: Any, collection: str, passages: Passages, embedder: Embedder, *, shards: int = 1, copies: int = 1
) -> int:
    """Write all passages to a collection, batch by batch, and return their number.

    `shards` are spread over the machines of a cluster, each stored `copies` times. Repeat it after an interruption or a change
    of the index: it writes the same points and deletes those of deleted passages. Raises IndexFormatError where the collection
    was filled with another embedder.
    """
    models = _import_qdrant().models
    retriever = QdrantRetriever(client, collection, embedder)
    if client.collection_exists(collection):
        retriever.check()
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
    """Delete the points of rows that do not exist any more."""
    alive = np.zeros(len(passages), bool)
    for rows in batch_rows(passages.live()):
        alive[rows] = True
    stale, after = list[int](), None
    while True:
        points, after = client.scroll(collection, limit=10_000, offset=after, with_payload=False, with_vectors=False)
        stale += [point.id for point in points if not (point.id < len(alive) and alive[point.id])]
        if after is None:
            break
    for batch in batch_rows(iter(stale)):
        client.delete(collection, points_selector=_import_qdrant().models.PointIdsList(points=batch), wait=True)
