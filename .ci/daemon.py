"""What the tests of a running daemon have in common."""

import os
import pathlib
import socket
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
DAEMON = ROOT / "target/release/cuzk-daemon"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def params():
    """The development parameters that the tests made, or new ones."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    for found in sorted(cache.glob("cuzk/dev-params/*-porep-2k-*/*.insecure-dev.json")):
        if found.with_name(found.name.replace(".insecure-dev.json", ".params")).exists():
            return found.parent
    folder = ROOT / "target/foreign-client-params"
    subprocess.run([DAEMON, "params", "generate", "--circuit", "porep-2k", "--out", folder], check=True)
    return folder
