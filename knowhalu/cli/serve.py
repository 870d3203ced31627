"""`knowhalu serve-model`: start vLLM as a child process, wait until it answers, and stop it with its own children."""

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
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, Unpack
from urllib.parse import urlsplit

import click
from click.exceptions import Exit

from knowhalu.cli.main import EXIT_INTERRUPTED
from knowhalu.cli.options import SettingOptions, make_settings, with_settings
from knowhalu.errors import InputError, MissingExtra, ModelError, SettingsError, hide_password
from knowhalu.llm.options import LLMOptions
from knowhalu.text.sentences import sanitize

if TYPE_CHECKING:
    import httpx2

POLL_SECONDS = 0.5
GRACE_SECONDS = 30.0
MAX_LOG_LINES = 20
REQUEST_SECONDS = 5.0
MAX_REPLY_BYTES = 2**20
UNAUTHORIZED_STATUS = (401, 403)
MAX_CONTEXT_TOKENS = 16_384
"""A context that fits every prompt; a longer one only takes memory from the cache of prefixes."""
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip
LOCAL_HOSTS = ("127.0.0.1", "localhost", "0.0.0.0", "::1")
STATUS_SECONDS = 15.0
END_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a program beside that of Ctrl-C; SIGHUP is sent when the terminal is closed."""


class ServedModels(NamedTuple):
    """The models that a running server lists; none where it requires another key (`locked`)."""

    names: tuple[str, ...]
    locked: bool = False


class ServerProcess:
    """A running server; leaving the `with` block ends it and every process that it started."""

    def __init__(self, command: list[str], environment: dict[str, str], show: Callable[[str], None] | None = None) -> None:
        self.last_lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._show = show
        # in a new session, so that Ctrl-C reaches it once, from here
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._alive = threading.Lock()
        self._alive.acquire()
        # in another thread: Ctrl-C within the wait of Popen may leave a lock taken that every later wait needs
        threading.Thread(target=self._watch, daemon=True).start()
        handled = [s for s in END_SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]  # nohup ignores SIGHUP
        self._handlers = {s: signal.signal(s, _interrupt) for s in handled}

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def poll(self) -> int | None:
        """Return the exit code, or None where the server still runs after a short wait."""
        if self._process.returncode is None:
            self._alive.acquire(timeout=POLL_SECONDS)
        return self._process.returncode

    def wait(self) -> int:
        """Wait until the server ends by itself and return its exit code."""
        while (code := self.poll()) is None:
            pass
        self._reader.join(GRACE_SECONDS)
        return code

    def stop(self) -> None:
        """Interrupt the server as Ctrl-C does, and kill what is left of it after `GRACE_SECONDS`."""
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
                self.last_lines.append(line.rstrip("\n"))
                if self._show:
                    self._show(line.rstrip("\n"))


def is_port_taken(address: tuple[str, int]) -> bool:
    """Return whether another process listens at the address."""
    try:
        socket.create_connection(address, timeout=1.0).close()
    except OSError:
        return False
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@click.command()
@click.argument("model")
@click.argument("further", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM OPTIONS]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; by default that of llm.url.")
@click.option("--name", help="Name for clients; by default that of the folder.")
@click.option(
    "--max-length", type=click.IntRange(256), help=f"Context in tokens; by default the model's, at most {MAX_CONTEXT_TOKENS:,}."
)
@click.option("--gpu-memory", type=click.FloatRange(0, 1, min_open=True), help="Share of the GPU's memory; by default 0.9.")
@click.option("--tensor-parallel", type=click.IntRange(1), help="GPUs to spread the model over; by default 1.")
@click.option("--deterministic", is_flag=True, help="Make replies independent of concurrent requests; slower.")
@click.option("--print", "only_print", is_flag=True, help="Print the command without running it.")
@click.option("--verbose", "-v", is_flag=True, help="Show the server's own log.")
@with_settings
def serve_model(
    model: str, further: tuple[str, ...], port: int | None, name: str | None, max_length: int | None, gpu_memory: float | None,
    tensor_parallel: int | None, deterministic: bool, only_print: bool, verbose: bool, **given: Unpack[SettingOptions],
) -> None:  # fmt: skip
    """Print the vLLM command for this use, run it, and report when the server answers.

    MODEL is the folder of a model on this machine; nothing is downloaded. Arguments after -- are passed to vLLM.
    """
    options = make_settings(given).llm
    host, default_port = _local_address(options.urls[0])
    name = name or Path(os.path.abspath(Path(model).expanduser())).name
    chosen = {
        "max_length": max_length, "gpu_memory": gpu_memory, "tensor_parallel": tensor_parallel, "deterministic": deterministic,
    }  # fmt: skip
    options = options.model_copy(update={option: value for option, value in chosen.items() if value})
    address = (host, port or default_port)
    command = serve_command(model, name, address, options, further)
    environment = dict(ENVIRONMENT, **({"VLLM_BATCH_INVARIANT": "1"} if options.deterministic else {}))
    click.echo(" ".join([*(f"{k}={v}" for k, v in environment.items()), shlex.join(command)]))
    if not only_print:
        _run(command, environment, address, name, options, verbose=verbose)


def serve_command(
    model: str, name: str, address: tuple[str, int], options: LLMOptions, further: tuple[str, ...] = ()
) -> list[str]:
    """Return the command line; raises ModelError where there is no such model, InputError for an unsafe option."""
    if any(f.replace("_", "-").startswith("--trust-remote-code") for f in further):
        raise InputError("--trust-remote-code would run code that comes with the model. Leave it out.")
    length = options.max_length or _context_length(model)
    return [
        "vllm", "serve", str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else model,
        "--served-model-name", name, "--host", address[0], "--port", str(address[1]),
        "--enable-prefix-caching", "--enable-prompt-tokens-details", "--generation-config", "vllm",
        *(["--max-model-len", str(length)] if length else []),
        "--gpu-memory-utilization", f"{options.gpu_memory:g}", "--tensor-parallel-size", str(options.tensor_parallel), *further,
    ]  # fmt: skip


def _context_length(model: str) -> int | None:
    """Return the length of the context to serve; None where only vLLM can find that of the model."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", model):  # a name that vLLM looks up in the local cache of a model hub
            return None
        raise ModelError(f"{model}: no such folder. Give the folder of a model on this machine; nothing is downloaded.")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: not the folder of a model (config.json: {error}). Give the folder with it.") from error
    config = config.get("text_config", config) if isinstance(config, dict) else {}
    length = config.get("max_position_embeddings")
    return min(length, MAX_CONTEXT_TOKENS) if isinstance(length, int) else None


def _local_address(url: str) -> tuple[str, int]:
    shown = hide_password(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"llm.url: {shown} is not an address ({error}); write it as http://127.0.0.1:PORT/v1") from error
    if host not in LOCAL_HOSTS:
        raise SettingsError(f"llm.url: {shown} is not on this machine; set it to http://127.0.0.1:PORT/v1 to serve here")
    return host or LOCAL_HOSTS[0], port or 80


def _run(
    command: list[str], environment: dict[str, str], address: tuple[str, int], name: str, options: LLMOptions, *, verbose: bool
) -> None:  # fmt: skip
    if shutil.which(command[0]) is None:
        raise MissingExtra("vllm", "vllm")
    if is_port_taken(address):
        raise InputError(f"port {address[1]} is in use by another process. Stop that process, or give another --port.")
    import httpx2

    from knowhalu.io.http import client_options
    from knowhalu.llm.client import read_api_key

    url, key = f"http://{address[0]}:{address[1]}/v1", read_api_key(options)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    show = (lambda line: click.echo(sanitize(line), err=True)) if verbose else None
    with (
        httpx2.Client(**client_options(REQUEST_SECONDS, headers)) as client,
        ServerProcess(command, environment, show) as server,
    ):
        try:
            _report_ready(_wait_until_ready(server, client, url), name, url, options.api_key_env)
            server.wait()
        except KeyboardInterrupt as error:
            click.echo("stopping the server", err=True)
            server.stop()
            raise Exit(EXIT_INTERRUPTED) from error
        raise _exit_error(server)


def _report_ready(served: ServedModels, name: str, url: str, variable: str) -> None:
    """Report that the server is up, and the options with which clients reach it."""
    given = "" if url.endswith(":8000/v1") else f" --set llm.url={url}"
    if served.names and name not in served.names:
        name = served.names[0]
        given += f" --set llm.model={shlex.quote(name)}"
    click.echo(sanitize(f"{name} answers at {url}. Ctrl-C stops it. In another terminal:"), err=True)
    if served.locked:
        click.echo(f"  export {variable}=KEY   # the key that the server requires (llm.api_key_env)", err=True)
    click.echo(sanitize(f'  knowhalu check --reasoner llm{given} -q "..." -a "..." --index FOLDER'), err=True)


def _wait_until_ready(server: ServerProcess, client: "httpx2.Client", url: str) -> ServedModels:
    """Wait until the server is up, and report the time waited at intervals."""
    start, live = time.monotonic(), sys.stderr.isatty()
    reported = start
    while (served := list_models(client, url)) is None:
        if server.poll() is not None:
            raise _exit_error(server)
        if time.monotonic() - reported >= (1.0 if live else STATUS_SECONDS):
            reported = time.monotonic()
            line = f"waiting for {url}: {reported - start:.0f} s"
            click.echo(f"\r{line} " if live else line, nl=not live, err=True)
    if live:
        click.echo(err=True)
    return served


def list_models(client: "httpx2.Client", url: str) -> ServedModels | None:
    """Return the models that the server lists; None while it is not up."""
    from knowhalu.io.http import Exchange, ReplyTooLong, TransientFault, send

    try:
        reply = send(client, "GET", f"{url}/models", None, Exchange(REQUEST_SECONDS, MAX_REPLY_BYTES))
        if reply.status != 200:
            return ServedModels((), locked=True) if reply.status in UNAUTHORIZED_STATUS else None
        names = tuple(str(card["id"]) for card in json.loads(reply.body)["data"])
    except (TransientFault, ReplyTooLong, ValueError, KeyError, TypeError):
        return None
    return ServedModels(names) if names else None


def _exit_error(server: ServerProcess) -> ModelError:
    code = server.wait()
    for line in server.last_lines:
        click.echo(f"  {sanitize(line)}", err=True)
    return ModelError(f"the server ended with exit code {code}; its last lines are shown above.")
