"""Relations: what opens a database is kept encrypted, as for streams."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """To this revision."""
    op.add_column("relations", sa.Column("secrets", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Back to the one before."""
    op.drop_column("relations", "secrets")
