"""Spark's Python daemon with units that hold a silent router for idle after one second, where a minute is usual."""

from streamjoin.flow.punctuation import StreamClock

if __name__ == "__main__":
    StreamClock.advance.__defaults__ = (1_000_000,)
    import runpy

    runpy.run_module("streamjoin.spark.daemon", run_name="__main__")
