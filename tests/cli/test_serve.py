"""`knowhalu serve-model`, with a script in place of vLLM."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path

import pytest

from knowhalu.cli.serve import ServerProcess
from tests.support.hanging import HANG

STAND_IN = """#!{python}
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
print("loading the model", flush=True)
seen = {{"argv": sys.argv[1:], "environ": dict(os.environ), "signals": 0, "asked": 0}}
def write():
    open({record!r}, "w").write(json.dumps(seen))
def stop(number, frame):
    seen["signals"] += 1
    write()
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
if {dies!r}:
    print("out of \\x1b[31mmemory", flush=True)
    sys.exit(3)
class Models(BaseHTTPRequestHandler):
    def do_GET(self):
        seen["asked"] += 1
        write()
        options = dict(zip(seen["argv"], seen["argv"][1:]))  # of two, the last one counts
        key = options.get("--api-key")
        right = key is None or self.headers["Authorization"] == "Bearer " + key
        self.send_response(503 if seen["asked"] < 3 else 200 if right else 401)
        self.end_headers()
        name = options["--served-model-name"]
        self.wfile.write(json.dumps({{"data": [{{"id": name}}]}}).encode())
    def log_message(self, *_):
        pass
port = int(seen["argv"][seen["argv"].index("--port") + 1])
HTTPServer.allow_reuse_port = True
HTTPServer(("127.0.0.1", port), Models).serve_forever()
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "Some-7B-Instruct"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 32768}))
    return folder


@pytest.fixture
def port():
    with socket.socket() as held:  # bound and not listening: nobody else gets the port, the stand-in shares it
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Return a function that puts a stand-in for vLLM on the PATH and gives the file where it notes what it saw."""

    def put(*, dies=False):
        programs, record = tmp_path / "bin", tmp_path / "seen.json"
        programs.mkdir()
        script = programs / "vllm"
        script.write_text(STAND_IN.format(python=sys.executable, record=str(record), dies=dies))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        return record

    return put


def _heed():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, also by children


@pytest.fixture
def started():
    """Return a function that starts the command; what a failed test leaves running is ended."""
    processes = []

    def start(*arguments):
        command = [sys.executable, "-m", "knowhalu", "serve-model", *map(str, arguments)]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen(command, **pipes, text=True, env=environ, preexec_fn=_heed))
        return processes[-1]

    yield start
    for process in processes:
        with process:
            process.terminate()


def lines(ours):
    """Yield what it tells, but for how long it waits where the machine is busy."""
    return (line for line in iter(ours.stderr.readline, "") if not line.startswith("waiting for "))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_waits_for_the_server_and_passes_an_interruption_on(stand_in, started, folder, port, how):
    record = stand_in()
    ours = started(folder, "--port", port)
    assert next(lines(ours)).startswith(f"Some-7B-Instruct answers at http://127.0.0.1:{port}/v1")
    assert json.loads(record.read_text())["asked"] == 3
    ours.send_signal(how)
    printed, told = ours.communicate(timeout=HANG)
    assert ours.returncode == 130
    assert "stopping the server" in told
    seen = json.loads(record.read_text())
    assert seen["signals"] == 1
    assert {k: seen["environ"].get(k) for k in ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK")} == {
        "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
    }  # fmt: skip
    assert seen["argv"][:2] == ["serve", str(folder)]
    assert "vllm serve" in printed


@pytest.mark.parametrize(("options", "key", "said"), [
    (("--api-key", "X"), None, "  export KNOWHALU_API_KEY=KEY   # the key that the server requires"),
    (("--api-key", "X"), "X\r", "  knowhalu check --reasoner llm"),
    (("--served-model-name", "judge"), None, "--set llm.model=judge -q"),
])  # fmt: skip
def test_the_options_of_clients_are_shown(stand_in, started, folder, port, monkeypatch, options, key, said):
    stand_in()
    monkeypatch.delenv("KNOWHALU_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("KNOWHALU_API_KEY", key)
    ours = started(folder, "--port", port, "--", *options)
    told = list(islice(lines(ours), 2))
    ours.send_signal(signal.SIGINT)
    ours.communicate(timeout=HANG)
    assert f"answers at http://127.0.0.1:{port}/v1" in told[0] and said in told[1]


def test_only_the_watching_thread_waits_for_the_process(monkeypatch):
    """Where Ctrl-C strikes within `Popen._wait`, a lock may stay taken that every later wait needs."""
    wait = subprocess.Popen._wait

    def elsewhere(process, timeout):
        assert threading.current_thread() is not threading.main_thread()
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "_wait", elsewhere)
    with ServerProcess([sys.executable, "-c", "import signal; signal.pause()"], {}) as server:
        assert server.poll() is None
        server.stop()
        assert server.poll() is not None


def test_the_current_folder_gives_its_name(knowhalu, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "--served-model-name Some-7B-Instruct " in knowhalu("serve-model", ".", "--print").stdout


def test_a_server_that_exits_is_reported_with_its_last_lines(stand_in, started, folder, port):
    stand_in(dies=True)
    printed, told = (ours := started(folder, "--port", port)).communicate(timeout=HANG)
    assert ours.returncode == 2
    assert "  loading the model\n" in told
    assert "memory" in told and "\x1b" not in told
    assert "error: the server ended with exit code 3; its last lines are shown above." in told


def test_print_only_prints_the_command(knowhalu, folder):
    result = knowhalu("serve-model", folder, "--print")
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip() == (
        "HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1 VLLM_NO_USAGE_STATS=1 VLLM_DO_NOT_TRACK=1 "
        f"DO_NOT_TRACK=1 vllm serve {folder} --served-model-name Some-7B-Instruct --host 127.0.0.1 --port 8000 "
        "--enable-prefix-caching --enable-prompt-tokens-details --generation-config vllm --max-model-len 16384 "
        "--gpu-memory-utilization 0.9 --tensor-parallel-size 1"
    )


def test_options_and_settings_reach_the_command(knowhalu, folder):
    options = ("--name", "judge", "--max-length", 4096, "--gpu-memory", 0.5, "--deterministic", "--print")
    settings = ("--set", "llm.url=http://localhost:9000/v1", "--set", "llm.tensor_parallel=2")
    said = knowhalu("serve-model", folder, *options, *settings, "--", "--quantization", "fp8").stdout
    for part in ("VLLM_BATCH_INVARIANT=1", "--served-model-name judge", "--host localhost --port 9000", "--max-model-len 4096",
                 "--gpu-memory-utilization 0.5", "--tensor-parallel-size 2 --quantization fp8"):  # fmt: skip
        assert part in said


def test_a_shorter_context_of_the_model_is_used(knowhalu, folder):
    (folder / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 8192}}))
    assert "--max-model-len 8192" in knowhalu("serve-model", folder, "--print").stdout
    assert "--max-model-len" not in knowhalu("serve-model", "org/model", "--print").stdout


@pytest.mark.parametrize(("arguments", "said"), [
    (("nowhere/at/all",), "no such folder"),
    (("empty",), "not the folder of a model"),
    (("model", "--", "--trust-remote-code"), "would run code that comes with the model"),
    (("model", "--", "--trust_remote_code=true"), "would run code that comes with the model"),
    (("model", "--set", "llm.url=http://far.example/v1"), "is not on this machine"),
    (("model", "--set", "llm.url=http://127.0.0.1:99999/v1"), "llm.url: http://127.0.0.1:99999/v1 is not an address (Port out"),
    (("model",), "pip install 'knowhalu[vllm]'"),
])  # fmt: skip
def test_an_unusable_model_or_option_is_refused_before_the_start(knowhalu, folder, monkeypatch, tmp_path, arguments, said):
    (tmp_path / "empty").mkdir()
    folder.rename(tmp_path / "model")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = knowhalu("serve-model", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_port_in_use_is_an_error(knowhalu, folder, stand_in):
    stand_in()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = knowhalu("serve-model", folder, "--port", taken.getsockname()[1])
    assert "is in use by another process" in result.stderr
