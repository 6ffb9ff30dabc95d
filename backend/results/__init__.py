"""The query proxy: questions to the results of jobs, once or for ever, over HTTP, websocket and server-sent events."""
