"""The FAISS file of an index, which finds candidates: choice of the factory, training, and validation when it is opened.

Training uses a fixed sample and a fixed seed, and vectors are added in order, so the same vectors give the same bytes on the
same machine with the same number of threads. Graphs depend on the order of insertion and are built by one thread.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError, SettingsError
from knowhalu.index.container import DAMAGE_HINT, Floats, Ints, Storage, stream_vectors
from knowhalu.index.manifest import FAISS_FILE_PREFIX, MANIFEST_FILE, Manifest, SearchParameters

FLAT = "Flat"
MAX_FLAT_PASSAGES, MAX_SQ8_PASSAGES = 200_000, 2_000_000
"""Up to the first size search is exact; up to the second, vectors are stored in 8 bits, above it as product codes."""
TRAINING_SEED = 1234
TRAINING_VECTORS_PER_LIST = 40
"""Training vectors for each list of an IVF: FAISS wants at least 39."""
MIN_TRAINING_VECTORS = 65_536
"""Fewest training vectors, if there are so many: enough for the codebooks of a product quantizer."""
MAX_SEARCH_PARAMETER = 2**20
"""Largest value of a search parameter."""


class VectorFiles(NamedTuple):
    """The vector files to index, in order."""

    paths: Sequence[Path]
    dimension: int
    storage: Storage
    rows: int


def choose_factory(wanted: str, count: int, dimension: int) -> str:
    """Return the FAISS factory for a corpus; "auto" chooses by size. Raises SettingsError for an invalid factory."""
    if wanted != "auto":
        if "Refine" in wanted or "RFlat" in wanted:
            raise SettingsError(
                f"factory {wanted!r}: leave the refinement out; candidates are always reranked by their stored vectors"
            )
        if _index_kind(make_faiss_index(wanted, dimension)) is None and wanted != FLAT:
            raise SettingsError(f"factory {wanted!r}: only Flat, IVF and HNSW indexes are supported. Try HNSW32 or IVF4096,SQ8")
        return wanted
    if count <= MAX_FLAT_PASSAGES:
        return FLAT
    lists = 2 ** round(np.log2(2 * count**0.5))
    if count <= MAX_SQ8_PASSAGES:
        return f"IVF{lists},SQ8"
    codes = max(m for m in range(1, min(96, dimension) + 1) if dimension % m == 0)
    return f"IVF{lists},PQ{codes}"


def make_faiss_index(factory: str, dimension: int) -> Any:
    """Return an empty FAISS index by inner product; raises SettingsError for a factory that FAISS cannot build."""
    import faiss

    try:
        return faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise SettingsError(f"factory {factory!r}: FAISS cannot build it for {dimension} dimensions. Try IVF4096,PQ48") from error


def default_parameters(factory: str) -> SearchParameters:
    """Return the default search parameters of a factory."""
    head, _, codes = factory.partition(",")
    lists = "".join(c for c in head.partition("_")[0] if c.isdigit()) if "IVF" in head else ""
    nprobe = max(16, int(lists) // 128) if lists else 16
    return SearchParameters(nprobe=nprobe, refine=20 if "PQ" in codes else 4)


def parse_parameters(text: str, factory: str, usual: SearchParameters) -> SearchParameters:
    """Parse search parameters such as "nprobe=64,refine=8"; those that are not named keep their `usual` value.

    Raises SettingsError for a name that the factory does not use, or a value that is not a positive integer.
    """
    width = "nprobe" if "IVF" in factory else "ef_search"
    names = () if factory == FLAT else (width, "refine")
    values = dict(usual)
    for pair in filter(None, (item.strip() for item in text.split(","))):
        name, _, value = (word.strip() for word in pair.partition("="))
        if name not in names:
            known = f"takes {' and '.join(names)}" if names else "takes no parameter, since its search is exact. Leave it out"
            raise SettingsError(f"search {pair!r}: {name!r} is not a parameter. An index of the factory {factory} {known}")
        if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= MAX_SEARCH_PARAMETER:
            raise SettingsError(f"search {pair!r}: write it as {name}=NUMBER, from 1 to {MAX_SEARCH_PARAMETER}")
        values[name] = int(value)
    return SearchParameters(**values)


def _index_kind(index: Any) -> str | None:
    import faiss

    inner = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index
    if isinstance(inner, faiss.IndexIVF):
        return "ivf"
    return "hnsw" if isinstance(inner, faiss.IndexHNSW) else None


def make_faiss_file(source: VectorFiles, factory: str, path: Path, report: Callable[[int], None]) -> None:
    """Train a FAISS index on a sample of the vectors, add all vectors and write it; `report` gets the numbers added."""
    import faiss

    index = make_faiss_index(factory, source.dimension)
    threads = faiss.omp_get_max_threads()
    if "HNSW" in factory:
        faiss.omp_set_num_threads(1)
    try:
        with _assigned_on_gpus(index) as assign_added_vectors:
            if not index.is_trained:
                _train_index(index, factory, source)
            assign_added_vectors()
            for block in stream_vectors(source.paths, source.dimension, source.storage):
                index.add(block)
                report(len(block))
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(index, str(path))


def _train_index(index: Any, factory: str, source: VectorFiles) -> None:
    import faiss

    ivf = faiss.try_extract_index_ivf(index)
    lists = 0 if ivf is None else ivf.nlist
    sample = _read_training_vectors(source, max(MIN_TRAINING_VECTORS, TRAINING_VECTORS_PER_LIST * lists))
    try:
        index.train(sample)
    except RuntimeError as error:
        raise SettingsError(
            f"factory {factory!r} cannot be trained on {len(sample):,} passages, which are too few. Use auto or Flat"
        ) from error


def _read_training_vectors(source: VectorFiles, size: int) -> Floats:
    """Read a random sample of rows, in order."""
    if size >= source.rows:
        return np.concatenate(list(stream_vectors(source.paths, source.dimension, source.storage)))
    rows = np.sort(np.random.default_rng(TRAINING_SEED).choice(source.rows, size, replace=False))
    vectors, first, filled = np.empty((size, source.dimension), np.float32), 0, 0
    for block in stream_vectors(source.paths, source.dimension, source.storage):
        block_rows = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + len(block))] - first
        vectors[filled : filled + len(block_rows)] = block[block_rows]
        first, filled = first + len(block), filled + len(block_rows)
    return vectors


@contextmanager
def _assigned_on_gpus(index: Any) -> Iterator[Callable[[], None]]:
    """Assign vectors to lists on all GPUs that FAISS sees, if any, in training and, after a call of the result, in adding."""
    import faiss

    ivf = faiss.try_extract_index_ivf(index)
    if ivf is None or not hasattr(faiss, "get_num_gpus") or not faiss.get_num_gpus():
        yield lambda: None
        return
    cpu_quantizer = ivf.quantizer

    def assign_added_vectors() -> None:
        ivf.quantizer = faiss.index_cpu_to_all_gpus(cpu_quantizer)

    ivf.clustering_index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(ivf.d))
    try:
        yield assign_added_vectors
    finally:
        ivf.clustering_index, ivf.quantizer = None, cpu_quantizer


class FaissFile:
    """An opened FAISS index over the first `rows` rows of an index folder."""

    def __init__(self, path: Path, rows: int, dimension: int, dead: Ints) -> None:
        """Open a file and exclude `dead` rows; raises IndexFormatError where it does not have these rows and dimension."""
        import faiss

        self._path, self._index = path, _open_memory_mapped(path)
        properties = self._index.d, self._index.ntotal, self._index.metric_type
        self._kind = _index_kind(self._index)
        if properties != (dimension, rows, faiss.METRIC_INNER_PRODUCT) or self._kind is None:
            raise IndexFormatError(
                f"{path}: is not a FAISS index of {rows} vectors of length {dimension} by inner product. {DAMAGE_HINT}"
            )
        self._options: dict[str, Any] = {}
        if len(dead):
            alive = np.ones(-(-rows // 8) * 8, np.uint8)
            alive[dead] = 0
            self._bits = np.packbits(alive, bitorder="little")  # the selector reads it in place
            self._options["sel"] = faiss.IDSelectorBitmap(len(self._bits), faiss.swig_ptr(self._bits))

    def candidates(self, queries: Floats, count: int, parameters: SearchParameters) -> NDArray[Any]:
        """Return the approximately nearest live rows `(len(queries), count)`, padded with -1."""
        import faiss

        if self._kind == "ivf":
            options = faiss.SearchParametersIVF(nprobe=parameters.nprobe, **self._options)
        else:
            options = faiss.SearchParametersHNSW(efSearch=max(parameters.ef_search, count), **self._options)
        if isinstance(self._index, faiss.IndexPreTransform):
            options = faiss.SearchParametersPreTransform(index_params=options)
        try:
            rows: NDArray[Any] = self._index.search(queries, count, params=options)[1]
        except RuntimeError as error:
            raise IndexFormatError(f"{self._path}: FAISS cannot search it. {DAMAGE_HINT}") from error
        if rows.size and (rows.max() >= self._index.ntotal or rows.min() < -1):
            raise IndexFormatError(f"{self._path}: contains rows that the index does not have. {DAMAGE_HINT}")
        return rows


def _open_memory_mapped(path: Path) -> Any:
    """Read a FAISS file as a memory map; raises IndexFormatError where FAISS cannot read it."""
    import faiss

    guarded = hasattr(faiss, "set_deserialization_vector_byte_limit")
    default_limit = faiss.get_deserialization_vector_byte_limit() if guarded else 0
    if guarded:
        # no vector in a file is longer than the file, so a forged count cannot make FAISS allocate more
        faiss.set_deserialization_vector_byte_limit(path.stat().st_size)
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2].splitlines()[0]
        raise IndexFormatError(f"{path}: FAISS cannot read it ({reason}). {DAMAGE_HINT}") from error
    finally:
        if guarded:
            faiss.set_deserialization_vector_byte_limit(default_limit)


def open_faiss(folder: Path, manifest: Manifest, dead: Ints) -> FaissFile | None:
    """Open the FAISS file of an index without its `dead` rows; None where search is exact."""
    if manifest.factory == FLAT:
        return None
    name, rows = next((n for n in manifest.files if n.startswith(FAISS_FILE_PREFIX)), None), manifest.search.rows
    if name is None or not 0 < rows <= manifest.rows:
        raise IndexFormatError(
            f"{folder / MANIFEST_FILE}: lists no FAISS file for its factory {manifest.factory}. Rebuild the index"
        )
    return FaissFile(folder / name, rows, manifest.embedder.dimension, dead[: np.searchsorted(dead, rows)])
