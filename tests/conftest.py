"""What holds for every test: no network, a clean environment, nothing fetched."""

import os
import signal
import socket

import pytest
from hypothesis import HealthCheck, settings

LOCAL = {"127.0.0.1", "::1", "localhost"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ.update(OFFLINE)  # before any test module imports a library that reads them

# the same cases in every run, however busy the machine is
SLOW = [HealthCheck.too_slow]
settings.register_profile("knowhalu", deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
settings.load_profile("knowhalu")


class BlockedSocket(socket.socket):
    """A socket that reaches only this machine (asyncio's own loop needs a pair of them)."""

    def connect(self, address):
        self._check(address)
        return super().connect(address)

    def connect_ex(self, address):
        self._check(address)
        return super().connect_ex(address)

    def sendto(self, data, *rest):
        self._check(rest[-1])
        return super().sendto(data, *rest)

    def _check(self, address):
        if self.family != getattr(socket, "AF_UNIX", None) and address[0] not in LOCAL:
            raise RuntimeError(f"a test tried to reach {address!r}; mark it `network`")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell that starts the tests in the background lets them ignore Ctrl-C, and so would every process that a test interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_network(request, monkeypatch):
    if "network" not in request.keywords:
        monkeypatch.setattr(socket, "socket", BlockedSocket)
        monkeypatch.setattr(socket, "getaddrinfo", _local_only(socket.getaddrinfo))


def _local_only(getaddrinfo):
    def looked_up(host, *args, **kwargs):
        if host not in LOCAL and host is not None:
            raise RuntimeError(f"a test looked up {host!r}; mark it `network`")
        return getaddrinfo(host, *args, **kwargs)

    return looked_up


@pytest.fixture(autouse=True)
def clean_environ(monkeypatch, tmp_path_factory):
    for name in list(os.environ):
        if name.startswith(("KNOWHALU_", "OPENAI_", "HF_")) and name not in OFFLINE:
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))


@pytest.fixture(scope="session")
def vocabulary_folder(tmp_path_factory):
    """A folder with the tiny tokenizer."""
    from tests.support.tiny import write_tokenizer

    folder = tmp_path_factory.mktemp("vocabulary")
    write_tokenizer(folder)
    return folder
