"""The server backend against a real llama.cpp server, with a tiny model of random weights."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from knowhalu.llm.server_backend import ServerBackend
from knowhalu.settings import LLMOptions
from tests.support.llm_contract import *  # noqa: F403 - the shared tests run here
from tests.support.llm_contract import FREE, asker, changed

pytestmark = pytest.mark.slow
LIKED = ("CORRECT", "▁CORRECT", "IN", "▁IN", "yes", "no", "a▁", "say▁", "only")
PIECES = (*LIKED, "CON", "CLUSIVE", "CONCLUSIVE", "▁", "▁the", "▁sea", "RECT", "COR", "ON")
SHARED = ("a▁", "say▁")
"""What two choices begin with: liked more, since what follows halves its probability."""
LIKED_BYTES = b'01bc"|'
WIDTH, HEADS = 64, 4


def write_model(path):
    """Write a llama of one layer with a vocabulary of bytes and a few pieces."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed, so no model can be made")
    np = pytest.importorskip("numpy")
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), *PIECES]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(PIECES)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [float(len(p)) for p in PIECES])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = np.random.default_rng(0)

    def add(name, *shape, first=None):
        weights = random.normal(0.0, 0.2, shape).astype(np.float32)
        if first is not None:
            weights[:, 0] = first
        writer.add_tensor(name, weights)

    # the first number of every state is the same, so that of a token's output row is its bias: choices are liked
    liked = {tokens.index(piece) for piece in LIKED} | {3 + n for n in LIKED_BYTES}
    unseen = {0, 1, 2} | {3 + n for n in range(256) if not 32 <= n < 127}
    biases = [1.0 if i in liked else -1.0 if i in unseen else 0.0 for i in range(len(tokens))]
    for piece in SHARED:
        biases[tokens.index(piece)] = 1.5
    add("token_embd.weight", len(tokens), WIDTH, first=20.0)
    add("output.weight", len(tokens), WIDTH, first=biases)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}.weight", WIDTH, WIDTH)
    add("blk.0.ffn_gate.weight", 2 * WIDTH, WIDTH)
    add("blk.0.ffn_up.weight", 2 * WIDTH, WIDTH)
    add("blk.0.ffn_down.weight", WIDTH, 2 * WIDTH)
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed; its build takes ten minutes")
    model = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_model(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = (
        "--model",
        model,
        "--port",
        port,
        "--host",
        "127.0.0.1",
        "--n_ctx",
        2048,
        "--logits_all",
        "true",
        "--cache",
        "true",
    )
    process = subprocess.Popen([sys.executable, "-m", "llama_cpp.server", *map(str, options)])
    url = f"http://127.0.0.1:{port}/v1"
    try:
        while True:
            assert process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def llm(url):
    # this server puts a begun reply into a closed message; plain completions go on with it
    return asker(ServerBackend(LLMOptions(url=url, style="completion", concurrency=1)))


def test_a_begun_reply_is_gone_on_with(llm):
    """What a model of random weights writes may be cut into other tokens when it is read again, so plain text is begun."""
    asked = [changed(FREE, prefill="the sea", max_tokens=6), changed(FREE, prompt=f"{FREE.prompt}the sea", max_tokens=6)]
    rest, same = llm(asked)
    assert rest.text == same.text
    assert rest.prompt_tokens == same.prompt_tokens
