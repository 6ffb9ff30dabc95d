"""What every benchmarked system reports: one JSON file a run, the same fields for all."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Report:
    """One run. Rates count rows of both streams; None means not measured, and `notes` or `error` says why."""

    system: str
    state: str
    input: str = "parquet"
    rows_in: int = 0  # Both streams, rows of committed batches only.
    rows_late: int | None = None  # Rows dropped behind the watermark; above 0 the results are not all.
    results: int | None = None
    seconds: float | None = None  # First batch begun to last batch committed; start-up is not counted.
    seconds_after_warmup: float | None = None  # The same without the first batch, which pays for compilation.
    rows_per_second: float | None = None
    rows_per_second_after_warmup: float | None = None
    batch_rows: list[int] = field(default_factory=list)  # Same length as `batch_ms`.
    batch_ms: list[int] = field(default_factory=list)
    state_rows: int | None = None  # Stored rows of both streams at their peak.
    state_bytes: int | None = None  # Checkpointed state at its peak, where the system reports no rows.
    peak_rss_bytes: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)  # What only StreamJoin knows, as `report.json` has it.
    notes: list[str] = field(default_factory=list)
    spark_version: str | None = None
    flink_version: str | None = None
    error: str | None = None

    def set_batches(self, rows: list[int], ends_s: list[float], begin_s: float) -> None:
        """Fill rows, seconds and rates from each batch's rows and end, in seconds on the clock of `begin_s`."""
        self.batch_rows = rows
        begins_s = [begin_s, *ends_s[:-1]]
        self.batch_ms = [round((end - begin) * 1000) for begin, end in zip(begins_s, ends_s, strict=True)]
        self.rows_in = sum(rows)
        if not rows:
            return
        self.seconds = ends_s[-1] - begin_s
        self.rows_per_second = self.rows_in / self.seconds
        if len(rows) > 1:
            self.seconds_after_warmup = ends_s[-1] - ends_s[0]
            self.rows_per_second_after_warmup = sum(rows[1:]) / self.seconds_after_warmup

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")
