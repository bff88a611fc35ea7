"""A picture such as the daemon's, of a large machine on a bad day: what a test on a small one never sees."""

GIB = 1 << 30
PHASES = [("check", 40), ("stage", 60), ("lock_wait", 180), ("lock_hold", 610), ("msm_b_g2", 260), ("epilogue", 30), ("verify", 20)]


def picture(now):
    gpus = [gpu(n, now) for n in range(4)]
    return {
        "revision": 7,
        "now_unix_ms": now,
        "waiting": {"critical": 0, "high": 3, "normal": 41, "low": 12},
        "unfinished": [job(n, now, "running" if n < 3 else "queued") for n in range(6)],
        "ended": [job(n, now, ["completed", "failed", "cancelled"][min(2, n % 5)], ended=True) for n in range(10, 16)],
        "timeline": {"columns": [], "whole": True, "past": past(now), "present": [[1, 0, "lock_hold", "j-9", 4, now - 300, 0]]},
        "status": {
            "state": "serving",
            "version": "0.1.0",
            "uptime_seconds": 183_412,
            "total_proofs_completed": 21_480,
            "total_proofs_failed": 3,
            "pinned_memory_bytes": 9 * GIB,
            "pinned_memory_limit_bytes": 16 * GIB,
            "gpus": gpus,
            "loaded_srs": [srs("porep-32g", "hot", 51.2, 9), srs("porep-64g", "cold", 0, 0, True), srs("porep-2k", "warm", 1.1, 1)],
            "queues": [{"proof_kind": "POREP_SEAL_COMMIT", "pending": 56, "in_progress": 9}],
            "provable_circuits": ["porep-2k", "porep-8m", "porep-32g", "porep-64g"],
            "memory": {
                "shares": [
                    {"name": "body", "limit_bytes": GIB},
                    {"name": "queue", "limit_bytes": 4 * GIB},
                    {"name": "work", "limit_bytes": 59 * GIB},
                ],
                "uses": [use("body", 0.2), use("queue", 2.9), use("params", 21.5), use("witness", 8.25), use("device", 9)],
            },
            "store": {"jobs": 65, "payload_bytes": 3 * GIB, "errors": 0, "pending": 0, "trouble": ""},
            "incidents": [
                incident(now - 34_000, "GPU-3", "", "the device gets no work: Xid 79, the GPU has fallen off the bus"),
                incident(now - 34_500, "", "18f-77aa-2210", "partition 7 failed at device GPU-3, trying again: CUDA_ERROR_UNKNOWN"),
                incident(now - 7_200_000, "", "", "the parameters of porep-8m were not loaded: digest mismatch"),
            ],
            "warnings": ["device GPU-3 gets no work since 34 s: Xid 79, the GPU has fallen off the bus"],
        },
    }


def gpu(n, now):
    fenced = n == 3
    busy = [] if fenced else [
        {"job_id": f"18f-77aa-22{n}{w}", "partition": 3 * n + w, "phase": ("lock_hold", "msm_b_g2")[w], "since_unix_ms": now - 400}
        for w in range(2)
    ]
    return {
        "ordinal": n,
        "name": "NVIDIA H200",
        "uuid": f"GPU-6f1c2d9e-0000-4b1e-9a57-00000000000{n}",
        "pci_address": f"0000:{n + 1:02x}:00.0",
        "vram_total_bytes": 141 * GIB,
        "vram_free_bytes": 71 * GIB,
        "health": "fenced" if fenced else "available",
        "fence_reason": "Xid 79, the GPU has fallen off the bus" if fenced else "",
        "fenced_since_unix_ms": now - 34_000 if fenced else 0,
        "workers": 2,
        "busy_workers": busy,
    }


def past(now):
    """Both workers of each device, one's kernels beside the other's tail."""
    rows = []
    for device in range(4):
        for worker in range(2):
            at = now - 290_000 + 600 * worker
            until = now - (34_000 if device == 3 else 500)
            while at < until:
                for phase, took in PHASES:
                    rows.append([device, worker, phase, "j-9", 0, at, at + took])
                    at += took
    return rows


def srs(circuit, tier, gib, jobs, loading=False):
    return {
        "circuit_id": circuit, "tier": tier, "size_bytes": int(gib * GIB), "ref_count": jobs,
        "loading": loading, "loaded_percent": 42 if loading else 0,
    }


def use(name, gib):
    share = name if name in ("body", "queue") else "work"
    return {"name": name, "used_bytes": int(gib * GIB), "share": share}


def incident(at, device, job_id, text):
    return {"at_unix_ms": at, "device": device, "job_id": job_id, "text": text}


def job(n, now, state, ended=False):
    began = state != "queued"
    proved = 10 if state == "completed" else 4 + n % 3 if began else 0
    stages = {"waiting": 10 - proved, "synthesizing": 0, "ready": 0, "proving": 0, "proved": proved}
    if state == "running":
        stages.update(waiting=6 - proved, synthesizing=1, ready=1, proving=2)
    return {
        "job_id": f"18f-77aa-22{n:02}",
        "request_id": f"porep-t01000-{4700 + n}-b7c1e0d2a4f84e6d9c3b5a7089123456",
        "circuit_id": "porep-32g",
        "miner_id": 1000,
        "sector_number": 4700 + n,
        "priority": "high" if n < 2 else "normal",
        "state": state,
        "accepted_unix_ms": now - 1000 * (40 + 7 * n),
        "started_unix_ms": now - 1000 * 30 if began else 0,
        "ended_unix_ms": now - 1000 * 9 * (n - 9) if ended else 0,
        "queue_position": 0 if began else n - 3,
        "stages": stages,
        "queue_wait_ms": 9000 + 500 * n,
        "srs_load_ms": 0,
        "synthesis_ms": 2900 if began else 0,
        "gpu_compute_ms": 6100 if began else 0,
        "total_ms": 15_400 + 100 * n,
        "phases": [{"name": name, "duration_us": took * 10_000} for name, took in PHASES] if began else [],
        "partitions": [],
        "error_message": "partition 7: 3 attempts failed: device GPU-3: CUDA_ERROR_UNKNOWN" if state == "failed" else "",
        "devices": [],
    }
