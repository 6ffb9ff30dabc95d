"""API keys: whether one that a login made ends with it. Those of earlier versions do not, as they were made to be."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """To this revision."""
    ends = sa.Column("ends_with_login", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("api_keys", ends)
    op.create_index("ix_api_keys_made_by_session", "api_keys", ["made_by_session"])


def downgrade() -> None:
    """Back to the one before."""
    op.drop_index("ix_api_keys_made_by_session", "api_keys")
    op.drop_column("api_keys", "ends_with_login")
