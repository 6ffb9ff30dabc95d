"""Write the API's description to docs/openapi.json: `python -m backend.openapi`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from backend.app import create_app
from backend.settings import Settings

TARGET = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"


def main() -> None:
    """Write it; the file is compared with the app by a test."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(data=Path(folder), auth="off"))
        TARGET.write_text(json.dumps(app.openapi(), indent=1) + "\n")


if __name__ == "__main__":
    main()
