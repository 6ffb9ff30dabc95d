"""The control plane: streams, jobs and questions over HTTP and websocket."""
