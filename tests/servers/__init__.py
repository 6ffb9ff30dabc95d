"""Real servers for the tests marked `services`: the tests fetch, start, break and stop them."""

from .kafka import KafkaBroker, spark_connector_jars
from .maven import ServerUnavailable
from .process import ServerFailed

__all__ = ["KafkaBroker", "ServerFailed", "ServerUnavailable", "spark_connector_jars"]
