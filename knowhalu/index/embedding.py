"""The second stage of a build: embed the passages of each shard, on this machine or on a Ray cluster.

A shard is embedded by itself and always in the same batches, so its bytes do not depend on the process or on resumed work.
A worker writes the vectors of a shard completely or not at all. On a cluster, all machines share the work folder, for example
on a network disk.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowhalu.errors import IndexFormatError, MissingExtra, ModelError
from knowhalu.index.chunking import passage_title
from knowhalu.index.container import Floats, Storage, VectorWriter, open_vectors
from knowhalu.index.manifest import Chunking
from knowhalu.index.protocols import Embedder
from knowhalu.index.sharding import FinishedShard, group_into_windows, text_to_embed

PASSAGES_PER_CALL = 512
"""Passages embedded in one call, all of about the same length."""
NORM_TOLERANCE = 0.02
"""How far the square of a vector's length may be from 1, as half precision makes it."""


class EmbeddingTask(NamedTuple):
    """A shard to embed: the number of its first document and the title that continues from the shard before."""

    shard: FinishedShard
    first_document: int
    carried: str
    chunking: Chunking
    storage: Storage

    @property
    def out(self) -> Path:
        """Return the path of the vectors, which exists once they are complete."""
        return self.shard.path.with_suffix(".vectors")


EmbeddingStage = Callable[[Sequence[EmbeddingTask], Embedder, Callable[[int], None]], None]
"""Embeds all tasks, in any order and in any process, and reports the number of passages as they are finished."""


def embed_locally(tasks: Sequence[EmbeddingTask], embedder: Embedder, report: Callable[[int], None]) -> None:
    """Embed one shard after the other in this process."""
    for task in tasks:
        embed_shard(task, embedder, report)


def embed_shard(task: EmbeddingTask, embedder: Embedder, report: Callable[[int], None]) -> None:
    """Embed a shard and write its vectors."""
    with VectorWriter(task.out, task.storage) as file:
        for window in group_into_windows(_texts_to_embed(task), len):
            file.add(_embed_window(window, embedder, report))


def _texts_to_embed(task: EmbeddingTask) -> Iterator[str]:
    shard, chunking = task.shard.open(), task.chunking
    documents = (shard.spans[:, 0] - task.first_document).tolist()
    for i, document in enumerate(documents):
        # the first document may continue from the shard before
        title = shard.title(document) if document >= 0 else task.carried
        text, section = shard.text(i)
        yield text_to_embed(passage_title(title, section), text, chunking)


def _embed_window(window: list[str], embedder: Embedder, report: Callable[[int], None]) -> Floats:
    embedded = np.empty((len(window), embedder.dimension), np.float32)
    order = sorted(range(len(window)), key=lambda i: len(window[i]))
    for start in range(0, len(order), PASSAGES_PER_CALL):
        members = order[start : start + PASSAGES_PER_CALL]
        vectors, shape = embedder.encode([window[i] for i in members]), (len(members), embedder.dimension)
        if vectors.shape != shape or not np.all(np.abs(np.einsum("nd,nd->n", vectors, vectors) - 1) < NORM_TOLERANCE):
            raise ModelError(
                f"the embedder {embedder.name!r} returned vectors of shape {vectors.shape}, but {shape} and vectors of length 1 "
                "are needed. Check its model folder"
            )
        embedded[members] = vectors
        report(len(members))
    return embedded


def make_embedding_tasks(
    shards: Sequence[FinishedShard], chunking: Chunking, storage: Storage, first_document: int = 0
) -> list[EmbeddingTask]:
    """Return the tasks of all shards, in order."""
    tasks, title = list[EmbeddingTask](), ""
    for finished in shards:
        tasks.append(EmbeddingTask(finished, first_document, title, chunking, storage))
        if finished.summary.documents:
            title = finished.open().title(finished.summary.documents - 1)
        first_document += finished.summary.documents
    return tasks


def has_vectors(task: EmbeddingTask, dimension: int) -> bool:
    """Return whether the vectors of a shard are complete."""
    try:
        open_vectors(task.out, dimension, task.shard.summary.passages, task.storage)
    except IndexFormatError:
        return False
    return True


class RayEmbeddingStage:
    """Embed shards on all GPUs of a Ray cluster, one worker for each, or on its processors where it has none.

    `load` creates the embedder in each worker. Without a running cluster, Ray starts one on this machine. Raises MissingExtra
    where Ray is not installed.
    """

    def __init__(self, load: Callable[[], Embedder], workers: int | None = None) -> None:
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise MissingExtra("ray", "ray") from error
        self._load, self._workers = load, workers

    def __call__(self, tasks: Sequence[EmbeddingTask], embedder: Embedder, report: Callable[[int], None]) -> None:
        """Embed the tasks in any order; raises ModelError where a worker has a different embedder."""
        if not tasks:
            return
        import ray
        import ray.data

        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        gpus = int(ray.cluster_resources().get("GPU", 0))
        workers = min(self._workers or gpus or 1, len(tasks))
        rows = ray.data.from_items([{"task": number} for number in range(len(tasks))], override_num_blocks=len(tasks))
        done = rows.map_batches(
            _EmbeddingWorker,
            fn_constructor_args=(self._load, list(tasks), embedder.fingerprint),
            batch_size=1,
            concurrency=workers,
            num_gpus=1 if gpus else 0,
        )
        for row in done.iter_rows():
            report(int(row["passages"]))


class _EmbeddingWorker:
    """A worker process of Ray that embeds shards by their numbers."""

    def __init__(self, load: Callable[[], Embedder], tasks: list[EmbeddingTask], fingerprint: str) -> None:
        self._embedder, self._tasks = load(), tasks
        if self._embedder.fingerprint != fingerprint:
            raise ModelError(
                "a machine of the cluster has a different embedder under this name. Copy the same model to all machines"
            )

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Embed the shards of a batch and return their numbers of passages."""
        counts = []
        for number in batch["task"]:
            task = self._tasks[int(number)]
            embed_shard(task, self._embedder, lambda _: None)
            counts.append(task.shard.summary.passages)
        return {"passages": counts}
