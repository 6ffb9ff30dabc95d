"""Our record decoders beside msgspec and fastavro doing the same job: raw records to typed Arrow columns."""
