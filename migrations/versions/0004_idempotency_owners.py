"""Idempotency keys: who works on a request, and when that was last heard of."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """To this revision."""
    op.add_column("idempotency", sa.Column("owner", sa.String(length=40), nullable=False, server_default=""))
    op.add_column("idempotency", sa.Column("beat_at_us", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Back to the one before."""
    op.drop_column("idempotency", "beat_at_us")
    op.drop_column("idempotency", "owner")
