"""Starts the daemon and drives it through Python's own gRPC, over TCP, TLS with a token, and a unix socket."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import grpc
from grpc_tools import protoc

from daemon import DAEMON, ROOT, free_port, params

SAMPLE = ROOT / "cuzk-synth/samples/c1-2KiB-v1_1-miner1000-sector43.json"
LIMIT = 256 << 20


def generated(folder):
    """The modules that protoc makes of our proto."""
    arguments = ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main([*arguments, "cuzk/v1/proving.proto"]) == 0
    sys.path.insert(0, folder)
    from cuzk.v1 import proving_pb2, proving_pb2_grpc

    return proving_pb2, proving_pb2_grpc


def certificates(folder):
    """An authority, and a certificate for this machine that it signed, as PEM files."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "1")
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    pathlib.Path(folder, "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    sign = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "1"]
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *sign)
    os.chmod(f"{folder}/server.key", 0o600)


def token(folder):
    """A token of scope submit, whose line goes to the daemon's file."""
    made = subprocess.run(
        [DAEMON, "token", "new", "--name", "python", "--scope", "submit,read"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    file = pathlib.Path(folder, "tokens")
    file.write_text(made[1] + "\n")
    file.chmod(0o600)
    return made[3]


def connect(address, root=None):
    # Over a unix socket Python sends the path as authority, which HTTP/2 forbids and the server rejects.
    options = [
        ("grpc.max_send_message_length", LIMIT),
        ("grpc.max_receive_message_length", LIMIT),
        ("grpc.default_authority", "localhost"),
    ]
    if root is None:
        channel = grpc.insecure_channel(address, options)
    else:
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(root_certificates=root), options)
    grpc.channel_ready_future(channel).result(timeout=60)
    return channel


def main():
    with tempfile.TemporaryDirectory() as folder:
        pb, rpc = generated(folder)
        port, sock = free_port(), f"{folder}/cuzk.sock"
        config = pathlib.Path(folder) / "cuzk.toml"
        config.write_text(
            f'[daemon]\nlisten = ["127.0.0.1:{port}", "unix://{sock}"]\n'
            f'[srs]\nparam_cache = "{params()}"\nallow_dev_params = true\n'
            # A store of its own: the user's may hold the proof from an earlier run, and would answer at once.
            f'[store]\npath = "{folder}/store"\n'
        )
        tcp, unix = f"127.0.0.1:{port}", f"unix://{sock}"

        def plain():
            check(pb, rpc, tcp, unix)
            for address in (tcp, unix):
                assert node(address) == "OK", address

        run(config, sock, plain)

        certificates(folder)
        secret = token(folder)
        config.write_text(
            config.read_text()
            + f'[tls]\ncert = "{folder}/server.pem"\nkey = "{folder}/server.key"\n[auth]\ntokens = "{folder}/tokens"\n'
        )
        authority = pathlib.Path(folder, "ca.pem")

        def secure():
            check_secure(pb, rpc, tcp, authority, secret)
            assert node(tcp, authority, secret) == "OK"
            assert node(tcp, authority) == node(tcp, authority, secret + "0") == "UNAUTHENTICATED"
            assert node(tcp) == "UNAVAILABLE", "plain text to a port that speaks TLS"
            assert node(unix) == "OK", "a unix socket is guarded by its permissions"

        run(config, sock, secure)
    print("foreign client: 1 sector proven over TCP, replayed over a unix socket, bad input refused; TLS and tokens hold")


def run(config, sock, body):
    """Runs a daemon, and `body` beside it."""
    daemon = subprocess.Popen([DAEMON, "serve", "--config", config])
    try:
        body()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(timeout=60) == 0, "the daemon did not end well"
        assert not os.path.exists(sock), "the socket is left behind"
    finally:
        daemon.kill()


def node(address, authority=None, secret=""):
    """What Node's client is told."""
    words = ["node", ROOT / ".ci/foreign_client.mjs", address, *([authority] if authority else [])]
    environment = {**os.environ, "TOKEN": secret}
    told = subprocess.run(words, env=environment, check=True, capture_output=True, text=True, timeout=60)
    return told.stdout.strip()


def check_secure(pb, rpc, address, authority, secret):
    stub = rpc.ProvingEngineStub(connect(address, authority.read_bytes()))

    def with_token(text):
        return [("authorization", f"Bearer {text}")]

    status = stub.GetStatus(pb.GetStatusRequest(), timeout=5, metadata=with_token(secret))
    assert status.uptime_seconds < 600, status
    unauthenticated, denied = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
    refused(unauthenticated, lambda: stub.GetStatus(pb.GetStatusRequest(), timeout=5))
    refused(unauthenticated, lambda: stub.GetStatus(pb.GetStatusRequest(), timeout=5, metadata=with_token(secret + "0")))
    evict = pb.EvictSrsRequest(circuit_id="porep-2k")
    refused(denied, lambda: stub.EvictSRS(evict, timeout=5, metadata=with_token(secret)))


def refused(code, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return
    raise AssertionError(f"accepted, where {code} was due")


def check(pb, rpc, tcp, unix):
    stub = rpc.ProvingEngineStub(connect(tcp))
    meta = json.loads(SAMPLE.with_suffix("").with_suffix(".meta.json").read_text())
    submit = pb.SubmitProofRequest(
        request_id="[python] 1000/43",
        proof_kind=pb.POREP_SEAL_COMMIT,
        sector_size=meta["sector_size"],
        registered_proof=5,
        vanilla_proof=SAMPLE.read_bytes(),
        sector_number=meta["sector_number"],
        miner_id=meta["miner_id"],
    )
    accepted = stub.SubmitProof(submit)
    begin = time.monotonic()
    status = stub.GetStatus(pb.GetStatusRequest(), timeout=5)
    assert sum(q.pending + q.in_progress for q in status.queues) == 1, status
    print(f"status while proving, after {1000 * (time.monotonic() - begin):.0f} ms: {status.state}")
    result = stub.AwaitProof(pb.AwaitProofRequest(job_id=accepted.job_id))
    assert result.status == pb.AwaitProofResponse.COMPLETED, result.error_message
    assert len(result.proof) == 192

    over_unix = rpc.ProvingEngineStub(connect(unix))
    again = over_unix.Prove(pb.ProveRequest(submit=submit)).result
    assert again.proof == result.proof and again.job_id == result.job_id

    submit.miner_id += 1
    try:
        over_unix.SubmitProof(submit)
        raise AssertionError("a wrong miner was accepted")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        assert "replica_id" in error.details(), error.details()


if __name__ == "__main__":
    main()
