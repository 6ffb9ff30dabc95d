"""Machines: which of them take jobs, and in whose data folder a job's state is."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "machines",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("folder", sa.String(40), nullable=False),
        sa.Column("seen_at_us", sa.BigInteger(), nullable=False),
        sa.Column("free_bytes", sa.BigInteger(), nullable=False),
    )
    op.add_column("leases", sa.Column("folder", sa.String(40), nullable=True))
    op.add_column("leases", sa.Column("incarnation", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Back to the one before."""
    op.drop_column("leases", "incarnation")
    op.drop_column("leases", "folder")
    op.drop_table("machines")
