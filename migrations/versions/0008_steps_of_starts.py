"""Leases: what steps of its start a driver is done with."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """To this revision."""
    op.add_column("leases", sa.Column("steps", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Back to the one before."""
    op.drop_column("leases", "steps")
