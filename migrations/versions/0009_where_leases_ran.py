"""Leases: in which data folder a generation ran, which was told by its machine's row as long as there was one."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """To this revision."""
    op.add_column("leases", sa.Column("ran_in", sa.String(40), nullable=True))
    op.execute(
        "UPDATE leases SET ran_in = "
        "COALESCE(folder, (SELECT machines.folder FROM machines WHERE machines.name = leases.host))"
    )


def downgrade() -> None:
    """Back to the one before."""
    op.drop_column("leases", "ran_in")
