"""The embedding stage on a Ray cluster: each shard is embedded by the same code as on one machine, with the same bytes.

The work folder must be the same for all machines of the cluster, such as a network disk. A worker writes the vectors of a shard
beside its passages, whole or not at all, so a stage that is stopped goes on with the shards that are not there yet.
"""

from collections.abc import Callable, Sequence
from typing import Any

from knowhalu.errors import MissingExtra, ModelError
from knowhalu.index.embedding import EmbeddingTask, embed_shard
from knowhalu.index.protocols import Embedder

EmbedderLoader = Callable[[], Embedder]


class RayEmbeddingStage:
    """Embed shards on all GPUs of a Ray cluster, one worker for each, or on its processors where it has none.

    `load` makes the embedder in each worker. Without a running cluster Ray starts one on this machine. Raises MissingExtra
    where Ray is not installed.
    """

    def __init__(self, load: EmbedderLoader, workers: int | None = None) -> None:
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise MissingExtra("ray", "ray") from error
        self._load, self._workers = load, workers

    def __call__(self, tasks: Sequence[EmbeddingTask], embedder: Embedder, report: Callable[[int], None]) -> None:
        """Embed the tasks in any order; raises ModelError where a worker has another embedder than this machine."""
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
    """A process that embeds shards; Ray makes it and hands it their numbers."""

    def __init__(self, load: EmbedderLoader, tasks: list[EmbeddingTask], fingerprint: str) -> None:
        self._embedder, self._tasks = load(), tasks
        if self._embedder.fingerprint != fingerprint:
            raise ModelError("a machine of the cluster has another embedder under this name. Copy the same model to all machines")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Embed the shards of a batch and return how many passages they have."""
        counts = []
        for number in batch["task"]:
            task = self._tasks[int(number)]
            embed_shard(task, self._embedder, lambda _: None)
            counts.append(task.cut.made.passages)
        return {"passages": counts}
