"""What commands for whoever runs the platform ask of it. The library finds this module by its name, and no other."""

from backend.auth.rotate import main as rotate_key
from backend.settings import read_settings
from worker.checks import all_checks
from worker.platform import read_up_settings
from worker.up import main as up

__all__ = ["all_checks", "read_settings", "read_up_settings", "rotate_key", "up"]
