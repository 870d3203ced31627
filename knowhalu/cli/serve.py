"""`knowhalu serve-model`: vLLM as a child process, started, watched until it answers, and stopped with its children."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from urllib.parse import urlsplit

import click
from click.exceptions import Exit

from knowhalu.cli.options import make_settings, with_settings
from knowhalu.errors import InputError, MissingExtra, ModelError, SettingsError
from knowhalu.llm.client import read_api_key
from knowhalu.llm.options import LLMOptions
from knowhalu.text.sentences import sanitize

POLL_SECONDS = 0.5
GRACE_SECONDS = 30.0
MAX_LOG_LINES = 20
UNAUTHORIZED_STATUS = (401, 403)
END_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What else than Ctrl-C ends a program; SIGHUP comes where the terminal is closed."""


class ServedModels(NamedTuple):
    """What a server that is up says of its models; one that wants another key names none."""

    names: tuple[str, ...]
    locked: bool = False


class ServerProcess:
    """A running server; leaving the block ends it and whatever it started."""

    def __init__(self, command: list[str], environment: dict[str, str], show: Callable[[str], None] | None = None) -> None:
        self.last: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._show = show
        # a session of its own, so that Ctrl-C reaches it once, from here
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._alive = threading.Lock()
        self._alive.acquire()
        # in a thread of its own: Ctrl-C within the wait of Popen can leave a lock taken that every later wait needs
        threading.Thread(target=self._watch, daemon=True).start()
        heard = [s for s in END_SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]  # nohup lets SIGHUP be ignored
        self._before = {s: signal.signal(s, _interrupt) for s in heard}

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for ending, before in self._before.items():
            signal.signal(ending, before)

    def poll(self) -> int | None:
        """Return the exit code if it has ended; wait a moment for that."""
        if self._process.returncode is None:
            self._alive.acquire(timeout=POLL_SECONDS)
        return self._process.returncode

    def wait(self) -> int:
        """Wait until it ends by itself and return its exit code."""
        while (code := self.poll()) is None:
            pass
        self._reader.join(GRACE_SECONDS)
        return code

    def models(self, url: str, key: str) -> ServedModels | None:
        """Return what it lists, asked with the key where there is one; None while it is not up."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
        try:
            with opener.open(asked, timeout=5.0) as reply:
                names = tuple(str(card["id"]) for card in json.load(reply)["data"])
                return ServedModels(names) if names else None
        except urllib.error.HTTPError as error:
            return ServedModels((), locked=True) if error.code in UNAUTHORIZED_STATUS else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C would; whatever is left after a while is killed."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)
            until = time.monotonic() + GRACE_SECONDS
            try:
                while self.poll() is None and time.monotonic() < until:
                    pass
            except KeyboardInterrupt:
                pass
            self._process.kill()
            while self.poll() is None:
                pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._reader.join(GRACE_SECONDS)

    def _watch(self) -> None:
        self._process.wait()
        self._alive.release()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.last.append(line.rstrip("\n"))
                if self._show:
                    self._show(line.rstrip("\n"))


def is_port_taken(address: tuple[str, int]) -> bool:
    """Tell whether something listens there already."""
    try:
        socket.create_connection(address, timeout=1.0).close()
    except OSError:
        return False
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


MAX_CONTEXT_TOKENS = 16_384
"""Tokens of context that are enough for every prompt; more would only take memory from the cache of prefixes."""
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip
LOCAL_HOSTS = ("127.0.0.1", "localhost", "0.0.0.0", "::1")
EXIT_INTERRUPTED = 130
STATUS_SECONDS = 15.0


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("model")
@click.argument("further", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM OPTIONS]")
@click.option("--port", type=click.IntRange(1, 65535), help="Where it listens; by default the port of llm.url.")
@click.option("--name", help="What clients call it; by default the name of its folder.")
@click.option(
    "--max-length", type=click.IntRange(256), help=f"Context in tokens; by default the model's, at most {MAX_CONTEXT_TOKENS:,}."
)
@click.option("--gpu-memory", type=click.FloatRange(0, 1, min_open=True), help="Share of the GPU's memory; by default 0.9.")
@click.option("--tensor-parallel", type=click.IntRange(1), help="GPUs to spread the model over; by default 1.")
@click.option("--deterministic", is_flag=True, help="The same reply whatever else runs; slower.")
@click.option("--print", "only_print", is_flag=True, help="Print the command and do not run it.")
@click.option("--verbose", "-v", is_flag=True, help="Show the server's own log.")
@with_settings
def serve_model(
    model: str, further: tuple[str, ...], port: int | None, only_print: bool, verbose: bool, settings_file: Path | None,
    pairs: tuple[str, ...], **given: str | float | bool | None,
) -> None:  # fmt: skip
    """Print the vLLM command that suits this use, run it, and wait until the server answers.

    MODEL is the folder of a model on this machine; nothing is downloaded. What stands after -- is handed on to vLLM.
    """
    options = make_settings(settings_file, pairs).llm
    host, its_port = _place(options.url)
    name = str(given.pop("name") or Path(os.path.abspath(Path(model).expanduser())).name)
    options = options.model_copy(update={option: value for option, value in given.items() if value})
    address = (host, port or its_port)
    command = serve_command(model, name, address, options, further)
    environment = dict(ENVIRONMENT, **({"VLLM_BATCH_INVARIANT": "1"} if options.deterministic else {}))
    click.echo(" ".join([*(f"{k}={v}" for k, v in environment.items()), shlex.join(command)]))
    if not only_print:
        _run(command, environment, address, name, options, verbose=verbose)


def serve_command(
    model: str, name: str, address: tuple[str, int], options: LLMOptions, further: tuple[str, ...] = ()
) -> list[str]:
    """Return the command line; raises ModelError where there is no such model, InputError for an option that must not be."""
    if any(f.replace("_", "-").startswith("--trust-remote-code") for f in further):
        raise InputError("--trust-remote-code would run code that comes with the model; it is not passed on.")
    length = options.max_length or _length(model)
    return [
        "vllm", "serve", str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else model,
        "--served-model-name", name, "--host", address[0], "--port", str(address[1]),
        "--enable-prefix-caching", "--enable-prompt-tokens-details", "--generation-config", "vllm",
        *(["--max-model-len", str(length)] if length else []),
        "--gpu-memory-utilization", f"{options.gpu_memory:g}", "--tensor-parallel-size", str(options.tensor_parallel), *further,
    ]  # fmt: skip


def _length(model: str) -> int | None:
    """Return how long a context to serve; None where only vLLM can find the model's own."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", model):  # may lie in the cache of a model hub
            return None
        raise ModelError(f"{model}: no such folder. Give the folder of a model on this machine; nothing is downloaded.")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: not the folder of a model (config.json: {error}).") from error
    config = config.get("text_config", config) if isinstance(config, dict) else {}
    its_own = config.get("max_position_embeddings")
    return min(its_own, MAX_CONTEXT_TOKENS) if isinstance(its_own, int) else None


def _place(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"llm.url: {url} is no address ({error}); write it as http://127.0.0.1:PORT/v1") from error
    if host not in LOCAL_HOSTS:
        raise SettingsError(f"llm.url: {url} is not on this machine; set it to http://127.0.0.1:PORT/v1 to serve here")
    return host or LOCAL_HOSTS[0], port or 80


def _run(
    command: list[str], environment: dict[str, str], address: tuple[str, int], name: str, options: LLMOptions, *, verbose: bool
) -> None:  # fmt: skip
    if shutil.which(command[0]) is None:
        raise MissingExtra("vllm", "vllm")
    if is_port_taken(address):
        raise InputError(f"port {address[1]} is in use: something else listens there. Stop it, or give another --port.")
    url, key = f"http://{address[0]}:{address[1]}/v1", read_api_key(options)
    show = (lambda line: click.echo(sanitize(line), err=True)) if verbose else None
    with ServerProcess(command, environment, show) as server:
        try:
            _tell(_wait(server, url, key), name, url, options.api_key_env)
            server.wait()
        except KeyboardInterrupt as error:
            click.echo("stopping the server", err=True)
            server.stop()
            raise Exit(EXIT_INTERRUPTED) from error
        raise _died(server)


def _tell(found: ServedModels, name: str, url: str, variable: str) -> None:
    """Say that the server is up, and what a client must give it."""
    given = "" if url.endswith(":8000/v1") else f" --set llm.url={url}"
    if found.names and name not in found.names:
        name = found.names[0]
        given += f" --set llm.model={shlex.quote(name)}"
    click.echo(sanitize(f"{name} answers at {url}. Ctrl-C stops it. In another terminal:"), err=True)
    if found.locked:
        click.echo(f"  export {variable}=KEY   # the server wants the key that it was given (llm.api_key_env)", err=True)
    click.echo(sanitize(f'  knowhalu check --reasoner llm{given} -q "..." -a "..." --index FOLDER'), err=True)


def _wait(server: ServerProcess, url: str, key: str) -> ServedModels:
    """Wait until the server is up, telling from time to time that it is waited for."""
    start = told = time.monotonic()
    while (found := server.models(url, key)) is None:
        if server.poll() is not None:
            raise _died(server)
        if time.monotonic() - told >= (1.0 if sys.stderr.isatty() else STATUS_SECONDS):
            told = time.monotonic()
            line = f"waiting for {url}: {told - start:.0f} s"
            click.echo(f"\r{line} " if sys.stderr.isatty() else line, nl=not sys.stderr.isatty(), err=True)
    if sys.stderr.isatty():
        click.echo(err=True)
    return found


def _died(server: ServerProcess) -> ModelError:
    code = server.wait()
    for line in server.last:
        click.echo(f"  {sanitize(line)}", err=True)
    return ModelError(f"the server ended with exit code {code}; its last lines stand above.")
