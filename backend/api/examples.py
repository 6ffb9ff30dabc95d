"""Replies as they look, for the API's description: by the name of their schema; lists and pages are made of them."""

from __future__ import annotations

from typing import Any, Final

_AT: Final = "2026-01-31T12:00:00.000Z"
_QUERY: Final = (
    "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS"
)
_USER: Final = "usr_01kg7w2k5m0000000000000000"
_SPEC: Final = {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "time": "ts", "delay": "2s"}
_MADE: Final = {"owner_id": _USER, "created_at": _AT, "updated_at": _AT}
_COLUMNS: Final = [{"name": "id", "type": "int64"}, {"name": "price", "type": "int64"}]
_STEPS: Final = {"launch": 0.4, "process": 0.9, "spark": 0.2, "state": 0.7, "first_batch": 0.9}
_JOB: Final = {
    "id": "job_01kg7w2k5m0000000000000000", "name": "wins", "version": 1, "query": _QUERY, "queries": {},
    "streams": ["auctions", "bids"], "relations": [], "operator": {"name": "auto"}, "results": {"store": "sqlite"},
    "run": {"slots": 2}, "wanted": "running", "wanted_since": _AT, "observed": "running", "observed_since": _AT,
    "phase": "running", "reason": None, "generation": 1, "failures": 0,
    "last_run": {"generation": 1, "host": "worker-1", "pid": 4711, "since": _AT, "alive_until": _AT, "ended": False,
                 "steps": _STEPS},
    "last_start": {"generation": 1, "at": _AT, "cause": "start", "warm": True, "seconds": 3.1, "steps": _STEPS},
    **_MADE,
}  # fmt: skip
_KEY: Final = {
    "id": "key_01kg7w2k5m0000000000000000", "name": "nightly export", "start": "sj_Zk3v9Qa", "role": "viewer",
    "user_id": _USER, "created_at": _AT, "used_at": None, "revoked_at": None,
    "expires_at": "2027-01-31T12:00:00.000Z", "made_by_key": None, "ends_with_login": True,
}  # fmt: skip
_REJECTED: Final = {
    "id": "1-0", "stream": "bids", "reason": "bad_value", "batch": 7, "at": _AT, "source": "a/1.csv", "unit": "line",
    "position": 3, "detail": 'field "id": "x" is no int64', "record": "x,2.5", "record_base64": None,
    "truncated": False,
}  # fmt: skip

EXAMPLES: Final[dict[str, Any]] = {
    "JobOut": _JOB,
    "StreamOut": {"id": "str_01kg7w2k5m0000000000000000", "name": "bids", "version": 1, "spec": _SPEC,
                  "has_secrets": False, **_MADE},
    "RelationsInJobs": {"data": [{
        "relation": "customers", "job_id": "job_01kg7w2k5m0000000000000000", "job": "named bids", "phase": "running",
        "refresh": "10min", "refreshes": 1, "refresh_failures": 0, "problem": None,
        "looked_at": "2026-02-01T12:10:00.000Z", "reading_version": 3, "reading_rows": 400,
        "versions": [{"version": 2, "rows": 1003, "bad": 0, "bytes": 48128, "read_at": "2026-02-01T12:10:00.000Z",
                      "used_at": "2026-02-01T12:10:01.500Z", "batch": 597, "state": "in use"}],
    }]},
    "Asked": {"jobs": ["named bids"]},
    "RelationOut": {"id": "rel_01kg7w2k5m0000000000000000", "name": "customers", "version": 1,
                    "spec": {"source": "parquet", "path": "/data/customers"}, "has_secrets": False, **_MADE},
    "UserOut": {"id": _USER, "name": "kim", "role": "operator", "disabled": False, "created_at": _AT},
    "Me": {"id": _USER, "name": "kim", "role": "operator", "key_id": None},
    "KeyOut": _KEY,
    "KeyCreated": {**_KEY, "key": "sj_..., which is shown this once"},
    "SavedQueryOut": {"id": "qry_01kg7w2k5m0000000000000000", "name": "dear bids", "owner_id": _USER, "created_at": _AT,
                      "question": {"job": "wins", "where": "price > 100"}},
    "UploadOut": {"name": "orders.csv", "path": "upload:orders.csv", "bytes": 1024, "format": "csv", "owner_id": _USER,
                  "uploaded_at": _AT, "read_by": ["stream orders"]},
    "MachineOut": {"name": "joins-1", "takes_jobs": True, "jobs": 3, "free_bytes": 6442450944,
                   "folder": "0b5c1f6f2e3d4c5b9a8f7e6d5c4b3a29", "seen_at": _AT},
    "EventOut": {"id": "evt_01kg7w2k5m0000000000000000", "job_id": _JOB["id"], "at": _AT, "kind": "job.created",
                 "severity": "info", "message": "job wins was created", "data": {}, "actor_id": _USER},
    "Pushed": {"rows": 2, "duplicate": False},
    "Diagnostics": {"valid": True, "diagnostics": [], "columns": _COLUMNS,
                    "summary": "auctions joins bids within 10 s"},
    "Diff": {"changes": [{"field": "run.slots", "before": 1, "after": 2, "effect": "keeps_state",
                          "reason": None}],
             "starts_anew": False, "drops": None},
    "Dropped": {"state_at": _AT, "results": 1250, "could_go_on": True},
    "ProblemOut": {"code": "not_found", "status": 404, "title": "This was not found", "can_retry": False},
    "Revision": {"version": 1, "query": _QUERY, "queries": {}, "operator": {"name": "auto"},
                 "results": {"store": "sqlite"}, "run": {}, "until": _AT},
    "SnapshotOut": {"id": "41.0", "rows": 12, "bytes": 480, "blocks": 1, "hash": "9f2c", "time_min": _AT,
                    "time_max": _AT, "closed_at": _AT, "marks": [_AT, _AT], "batches": [41, 41], "generation": 1,
                    "shed": 0, "late": False},
    "AnswerOut": {"job": _JOB["id"], "job_name": "wins", "results": _JOB["id"], "last_snapshot": "41.0",
                  "time": "the latest event time among a result's tuples", "key": {"name": "id", "type": "int64"},
                  "schema": _COLUMNS, "rows": [[1, 250]], "rows_given": 1, "cursor": None, "truncated": False,
                  "stopped_by": None, "not_finite": 0, "limits": {"rows": 10000, "bytes": 1073741824, "seconds": 60.0},
                  "blocks_read": 1, "blocks_wanted": 1, "blocks_stored": 3, "rows_read": 12, "snapshots": 42},
    "Files": {"path": "/data", "parent": None, "has_more": False, "is_cut": False, "data": [
        {"name": "orders.csv", "path": "/data/orders.csv", "kind": "file", "format": "csv", "bytes": 1024}]},
    "RejectedPage": {"data": [_REJECTED], "has_more": False, "counts": [
        {"stream": "bids", "reason": "bad_value", "rows": 12, "kept": 12, "meaning": "a field has a wrong value"}]},
    "OperatorOut": {"name": "biclique", "system": "BiStream", "settings": {"type": "object", "properties": {}},
                    "runs_jobs": True},
    "GeneratorOut": {"kind": "nexmark.bid", "columns": _COLUMNS},
    "ProblemDocument": {
        "type": "/api/v1/problems/not_found", "title": "This was not found", "status": 404,
        "detail": 'there is no job "wins"', "instance": "/api/v1/jobs/wins", "code": "not_found",
        "subcode": "unknown_name", "params": {"what": "job", "name": "wins"}, "can_retry": False,
        "request_id": "req_01kg7w2k5m0000000000000000", "errors": []},
}  # fmt: skip


def example_of(schema: dict[str, Any]) -> Any:
    """What a reply of a schema looks like; None where nobody wrote one."""
    if schema.get("type") == "array":
        one = example_of(schema["items"])
        return None if one is None else [one]
    name = schema.get("$ref", "").rpartition("/")[2]
    if name.startswith("Page_"):
        one = EXAMPLES.get(name.removeprefix("Page_").removesuffix("_"))
        return None if one is None else {"data": [one], "has_more": False}
    return EXAMPLES.get(name)
