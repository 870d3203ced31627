"""Embedders: vectors equal to those of the library, independent of batching, from safe local folders only."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from knowhalu.encoder.adapters import FlagEmbedder, SentenceTransformerEmbedder
from knowhalu.encoder.embedder import MiniLMEmbedder, is_mean_pooled_bert, load_embedder, packaged_minilm_folder
from knowhalu.errors import MissingExtra, ModelError
from tests.support.indexing import FACTS

TEXTS = [*list(FACTS.values())[:3], "a", "", "Naïve café 日本.", "word " * 300, "The cat sat on the mat. " * 12]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Give a BERT folder with random weights: the shipped one, cut down."""
    folder = tmp_path / "tiny"
    shutil.copytree(packaged_minilm_folder(), folder, ignore=shutil.ignore_patterns("model.safetensors"))
    config = json.loads((folder / "config.json").read_text()) | SMALL
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tiny_weights(), folder / "model.safetensors", {"format": "pt"})
    return folder


def tiny_weights() -> dict[str, torch.Tensor]:
    """Make weights for the small sizes, named as the library names them."""
    torch.manual_seed(0)
    layer, norm = "encoder.layer.0.", "LayerNorm"
    shapes = {f"embeddings.{n}_embeddings": (c, 16) for n, c in (("word", 30522), ("position", 512), ("token_type", 2))}
    shapes |= {f"{layer}attention.self.{n}": (16, 16) for n in ("query", "key", "value")}
    shapes |= {f"{layer}attention.output.dense": (16, 16), f"{layer}intermediate.dense": (32, 16)}
    shapes |= {f"{layer}output.dense": (16, 32), "pooler.dense": (16, 16)}
    weights = {f"{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": torch.randn(shape[0]) for name, shape in shapes.items() if "embeddings" not in name}
    for place in ("embeddings.", f"{layer}attention.output.", f"{layer}output."):
        weights |= {f"{place}{norm}.weight": torch.ones(16), f"{place}{norm}.bias": torch.zeros(16)}
    return weights


@pytest.fixture(scope="module")
def encoded(minilm: MiniLMEmbedder) -> NDArray[np.float32]:
    """Give the vectors of the texts in full precision."""
    return minilm.encode(TEXTS)


def change(path: Path, **values: object) -> None:
    """Change values of a JSON file."""
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(old | values))


def test_vectors_equal_those_of_the_library(encoded: NDArray[np.float32]) -> None:
    """Same pooling, same truncation at 256 tokens, same order."""
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(packaged_minilm_folder()), device="cpu", local_files_only=True)
    wanted = library.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert encoded.dtype == np.float32 and np.abs(encoded - wanted).max() < 1e-5


def test_half_precision_vectors_are_close(minilm: MiniLMEmbedder, encoded: NDArray[np.float32]) -> None:
    """An index made in one precision may be searched in the other."""
    half = MiniLMEmbedder(precision="bf16")
    assert (half.encode(TEXTS) * encoded).sum(axis=1).min() > 0.9995
    assert half.fingerprint == minilm.fingerprint


def test_vectors_do_not_depend_on_batching(minilm: MiniLMEmbedder, encoded: NDArray[np.float32]) -> None:
    """Alone, in a batch or in another order, a text has one vector of length 1."""
    assert np.allclose(minilm.encode(TEXTS[::-1])[::-1], encoded, atol=1e-6)
    assert np.allclose(minilm.encode(TEXTS[1:2]), encoded[1:2], atol=1e-6)
    assert np.allclose(np.linalg.norm(encoded, axis=1), 1, atol=1e-5)


def test_empty_and_invalid_texts_are_encoded(minilm: MiniLMEmbedder) -> None:
    """No texts give no rows; half a surrogate pair does not stop a batch."""
    assert minilm.encode([]).shape == (0, 384)
    assert np.allclose(minilm.encode(["a \ud800 b"]), minilm.encode(["a ? b"]), atol=1e-6)


def test_fingerprint_depends_on_the_files(tiny: Path) -> None:
    """It survives a move and changes with the weights, the tokenizer and the token limit."""
    seen = {MiniLMEmbedder(tiny).fingerprint}
    moved = Path(shutil.copytree(tiny, tiny.with_name("moved")))
    assert {MiniLMEmbedder(moved).fingerprint} == seen
    change(moved / "sentence_bert_config.json", max_seq_length=64)
    seen.add(MiniLMEmbedder(moved).fingerprint)
    save_file({k: v + 1 for k, v in tiny_weights().items()}, moved / "model.safetensors", {"format": "pt"})
    seen.add(MiniLMEmbedder(moved).fingerprint)
    assert len(seen) == 3


def test_mean_pooled_bert_loads_in_plain_torch_with_equal_vectors(tiny: Path) -> None:
    """The own encoder and the library agree on any such folder."""
    fast, slow = load_embedder(tiny, precision="fp32"), SentenceTransformerEmbedder(tiny, precision="fp32")
    assert isinstance(fast, MiniLMEmbedder) and fast.name == slow.name == "tiny" and slow.symmetric
    assert np.abs(fast.encode(TEXTS) - slow.encode(TEXTS)).max() < 1e-5 and fast.dimension == slow.dimension == 16


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}),
        ("config_sentence_transformers.json", {"prompts": {"query": "search: ", "document": ""}}),
        ("sentence_bert_config.json", {"do_lower_case": True}),
        ("config.json", {"model_type": "roberta"}),
    ],
)
def test_other_folders_load_by_the_library(tiny: Path, file: str, values: dict[str, object]) -> None:
    """The fast way is taken only where it is known to be right."""
    assert is_mean_pooled_bert(tiny)
    change(tiny / file, **values)
    assert not is_mean_pooled_bert(tiny)


def test_queries_get_the_declared_or_given_prefix(tiny: Path) -> None:
    """A prompt in the folder counts, one that is given counts more; passages stay as they are."""
    plain = load_embedder(tiny, precision="fp32")
    given = load_embedder(tiny, precision="fp32", query_prefix="find: ")
    change(tiny / "config_sentence_transformers.json", prompts={"query": "search: ", "document": ""})
    declared = load_embedder(tiny, precision="fp32")
    assert not given.symmetric and not declared.symmetric and plain.symmetric
    for embedder, prefix in ((given, "find: "), (declared, "search: ")):
        assert np.allclose(embedder.encode(["bees"], query=True), plain.encode([f"{prefix}bees"]), atol=1e-5)
        assert np.allclose(embedder.encode(["bees"]), plain.encode(["bees"]), atol=1e-5)


def test_a_folder_without_its_list_of_modules_is_pooled_as_it_declares(tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
    """BGE takes the vector of the first token; the library alone would average."""
    change(tiny / "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    first = load_embedder(tiny, precision="fp32").encode(["bees"])
    (tiny / "modules.json").unlink()
    assert np.allclose(load_embedder(tiny, precision="fp32").encode(["bees"]), first, atol=1e-6)
    assert not caplog.records


def test_a_folder_that_does_not_declare_its_pooling_is_warned_of(tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The vectors are those of before, and the remedy is named."""
    mean = load_embedder(tiny, precision="fp32").encode(["bees"])
    (tiny / "modules.json").unlink()
    shutil.rmtree(tiny / "1_Pooling")
    assert np.allclose(load_embedder(tiny, precision="fp32").encode(["bees"]), mean, atol=1e-5)
    assert "no modules.json" in caplog.text and f"flag:{tiny}" in caplog.text


def test_missing_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    """Nothing is looked up on any network."""
    for asked in (str(tmp_path / "gone"), f"flag:{tmp_path / 'gone'}", "sentence-transformers/all-MiniLM-L6-v2"):
        with pytest.raises(ModelError, match="no such model folder.*Nothing is ever downloaded.*minilm"):
            load_embedder(asked)


def test_pickles_and_code_in_folders_are_refused(tiny: Path) -> None:
    """A folder can neither unpickle nor import anything."""
    change(tiny / "config_sentence_transformers.json", prompts={"query": "x"})
    modules = json.loads((tiny / "modules.json").read_text())
    (tiny / "modules.json").write_text(json.dumps([{**m, "type": "evil.Module"} for m in modules]))
    with pytest.raises(ModelError, match=r"evil\.Module.*never run"):
        load_embedder(tiny)
    (tiny / "modules.json").write_text(json.dumps(modules))
    (tiny / "model.safetensors").rename(tiny / "pytorch_model.bin")
    with pytest.raises(ModelError, match="[Pp]ickled weights are never read"):
        load_embedder(tiny)


def test_damaged_model_is_a_model_error(tiny: Path) -> None:
    """Half a weight file or half a configuration is named."""
    weights = (tiny / "model.safetensors").read_bytes()
    (tiny / "model.safetensors").write_bytes(weights[:1000])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_embedder(tiny)
    (tiny / "modules.json").write_text("[")
    with pytest.raises(ModelError, match=r"modules\.json.*Copy the model folder again"):
        load_embedder(tiny)


def test_flag_embedding_is_an_extra(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the library is absent, the error is the command that installs it."""
    monkeypatch.setitem(sys.modules, "FlagEmbedding", None)
    with pytest.raises(MissingExtra, match=r"pip install 'knowhalu\[bge\]'"):
        load_embedder(f"flag:{tiny}")


def test_flag_embedding_encodes_queries_and_passages_separately(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is handed the prefix and called by its two verbs; the vectors come back with length 1."""

    class FlagModel:
        def __init__(self, folder: str, **options: object) -> None:
            self.options = options

        def encode_queries(self, texts: list[str]) -> NDArray[np.float64]:
            return np.array([[0.0, len(t)] for t in texts])

        def encode_corpus(self, texts: list[str]) -> NDArray[np.float64]:
            return np.array([[len(t), 0.0] for t in texts])

    library = ModuleType("FlagEmbedding")
    library.FlagModel = FlagModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "FlagEmbedding", library)
    embedder = load_embedder(f"flag:{tiny}", query_prefix="find: ", device="cpu")
    assert isinstance(embedder, FlagEmbedder) and embedder.name == "flag:tiny" and not embedder.symmetric
    assert embedder._model.options["query_instruction_for_retrieval"] == "find: " and embedder._model.options["devices"] == "cpu"
    assert embedder.encode(["abc"], query=True).tolist() == [[0, 1]] and embedder.encode(["abc"]).tolist() == [[1, 0]]
    assert embedder.fingerprint != SentenceTransformerEmbedder(tiny).fingerprint
