"""A server that runs as a child process: started, watched, asked whether it answers, and stopped with all its own children."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

POLL_SECONDS = 0.5
GRACE_SECONDS = 30.0
KEPT_LINES = 20
LOCKED = (401, 403)
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What else than Ctrl-C ends a program; SIGHUP comes where the terminal is closed."""


class Listed(NamedTuple):
    """What a server that is up says of its models; one that wants another key names none."""

    names: tuple[str, ...]
    locked: bool = False


class Served:
    """A running server; leaving the block ends it and whatever it started."""

    def __init__(self, command: list[str], environment: dict[str, str], show: Callable[[str], None] | None = None) -> None:
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
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
        heard = [s for s in ENDING if signal.getsignal(s) is not signal.SIG_IGN]  # nohup lets SIGHUP be ignored
        self._before = {s: signal.signal(s, _interrupt) for s in heard}

    def __enter__(self) -> "Served":
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

    def models(self, url: str, key: str) -> Listed | None:
        """Return what it lists, asked with the key where there is one; None while it is not up."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
        try:
            with opener.open(asked, timeout=5.0) as reply:
                names = tuple(str(card["id"]) for card in json.load(reply)["data"])
                return Listed(names) if names else None
        except urllib.error.HTTPError as error:
            return Listed((), locked=True) if error.code in LOCKED else None
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


def is_taken(address: tuple[str, int]) -> bool:
    """Tell whether something listens there already."""
    try:
        socket.create_connection(address, timeout=1.0).close()
    except OSError:
        return False
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
