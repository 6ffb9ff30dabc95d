"""Alembic's entry: the connection comes from `backend.catalog.migrate`."""

from alembic import context

from backend.catalog.models import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
