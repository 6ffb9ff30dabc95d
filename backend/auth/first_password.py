"""Where the first admin's random password is, and who is told.

Apart from `first_user`, because that takes long to import.
"""

from __future__ import annotations

from pathlib import Path

NAME = "admin"
FILE = "admin-password"


def welcome(data: Path, *, to_terminal: bool) -> str:
    """What is said of an admin who was made with a random password.

    Args:
        to_terminal: a person reads it and nothing keeps it; else it says only where the password is.
    """
    file = data.absolute() / FILE
    if not to_terminal:
        return f"user {NAME} was made; the password is in {file}"
    return f"user {NAME} was made, with the password {file.read_text().strip()}, which is also in {file}"
