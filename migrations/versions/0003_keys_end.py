"""API keys: when they end, and what made them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """To this revision."""
    op.add_column("api_keys", sa.Column("expires_at_us", sa.BigInteger(), nullable=True))
    op.add_column("api_keys", sa.Column("made_by_key", sa.String(length=40), nullable=True))
    op.add_column("api_keys", sa.Column("made_by_session", sa.String(length=64), nullable=True))
    op.create_index("ix_api_keys_made_by_key", "api_keys", ["made_by_key"])


def downgrade() -> None:
    """Back to the one before."""
    op.drop_index("ix_api_keys_made_by_key", "api_keys")
    for column in ("made_by_session", "made_by_key", "expires_at_us"):
        op.drop_column("api_keys", column)
