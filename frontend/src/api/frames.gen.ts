// Made by npm run gen:api; not to be edited.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Ask
         * @description Begin a one-time question, as POST /api/v1/queries: `schema`, `next` with its rows, `complete` with its end.
         */
        Ask: {
            /**
             * Type
             * @constant
             */
            type: "query";
            /** Id */
            id: string;
            payload: components["schemas"]["QueryIn"];
        };
        /**
         * ClientComplete
         * @description End a subscription or question; nothing more comes under this id but its `complete`.
         */
        ClientComplete: {
            /**
             * Type
             * @constant
             */
            type: "complete";
            /** Id */
            id: string;
        };
        /**
         * ClientPong
         * @description Taken, and not answered.
         */
        ClientPong: {
            /**
             * Type
             * @constant
             */
            type: "pong";
            /**
             * Payload
             * @default null
             */
            payload?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * Column
         * @description A column and its type, as join files name types.
         */
        Column: {
            /** Name */
            name: string;
            /** Type */
            type: string;
        };
        /**
         * CompleteFrame
         * @description The last frame under its id.
         */
        CompleteFrame: {
            /**
             * Type
             * @default complete
             * @constant
             */
            type?: "complete";
            /** Id */
            id: string;
            payload: components["schemas"]["Completion"];
        };
        /**
         * Completion
         * @description Why nothing more comes.
         *
         *     Args:
         *         reason: `asked`: the client asked for it; `answered`: the question is answered in full; `failed`: see the error
         *             before it; `deleted`: the job was deleted; `restarted`: the job began anew, so its earlier results are no
         *             longer its own; `resync`: results that the client asked for have been removed, or it is so far behind that
         *             it would miss changes of groups; `too_slow`: the client is, and chose backpressure `disconnect`, so it may
         *             subscribe again behind what it has; `closing`: the server is shutting down.
         *         end: of a question: as in the JSON reply of POST /api/v1/queries.
         */
        Completion: {
            /**
             * Reason
             * @enum {string}
             */
            reason: "asked" | "answered" | "failed" | "deleted" | "restarted" | "resync" | "too_slow" | "closing";
            /**
             * End
             * @default null
             */
            end?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ConnectionAck
         * @description Answers `connection_init`.
         */
        ConnectionAck: {
            /**
             * Type
             * @default connection_ack
             * @constant
             */
            type?: "connection_ack";
            payload: components["schemas"]["Greeting"];
        };
        /**
         * ConnectionInit
         * @description The first frame of a client.
         */
        ConnectionInit: {
            /**
             * Type
             * @constant
             */
            type: "connection_init";
            /**
             * Payload
             * @default null
             */
            payload?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ErrorFrame
         * @description What is wrong with a subscription or question; `complete` follows.
         */
        ErrorFrame: {
            /**
             * Type
             * @default error
             * @constant
             */
            type?: "error";
            /** Id */
            id: string;
            payload: components["schemas"]["ProblemDocument"];
        };
        /**
         * Gap
         * @description Snapshots that were dropped because the client was slow; `first` and `last` of them, and their rows.
         */
        Gap: {
            /** First */
            first: string;
            /** Last */
            last: string;
            /** Rows */
            rows: number;
        };
        /**
         * Greeting
         * @description Of the server.
         */
        Greeting: {
            /** Server Version */
            server_version: string;
            /** Heartbeat S */
            heartbeat_s: number;
            limits: components["schemas"]["SocketLimits"];
        };
        /**
         * News
         * @description Rows of one snapshot.
         *
         *     Args:
         *         rows: arrays in the order of the schema's columns.
         *         dropped: snapshots between the one before and this that were dropped; `gap` says which.
         *         more: more rows of this snapshot follow in another frame; resume after it only once they have come.
         *         truncated: the snapshot has more rows than are sent; a one-time question gives them all.
         */
        News: {
            /** Snapshot */
            snapshot: string;
            /** Rows */
            rows: unknown[][];
            /** Dropped */
            dropped: number;
            /** @default null */
            gap?: components["schemas"]["Gap"] | null;
            /**
             * More
             * @default false
             */
            more?: boolean;
            /**
             * Truncated
             * @default false
             */
            truncated?: boolean;
        };
        /**
         * NextFrame
         * @description Rows.
         */
        NextFrame: {
            /**
             * Type
             * @default next
             * @constant
             */
            type?: "next";
            /** Id */
            id: string;
            payload: components["schemas"]["News"];
        };
        /**
         * Ping
         * @description Answered by `pong` with the same payload.
         */
        Ping: {
            /**
             * Type
             * @constant
             */
            type: "ping";
            /**
             * Payload
             * @default null
             */
            payload?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * Place
         * @description One mistake in a request.
         *
         *     Args:
         *         pointer: JSON pointer into the body, or the name of a parameter or header.
         *         span: where in a query text: `line`, `column`, `end_line`, `end_column`, as `streamjoin.errors.Span`.
         */
        Place: {
            /**
             * Pointer
             * @default null
             */
            pointer?: string | null;
            /** Detail */
            detail: string;
            /**
             * Span
             * @default null
             */
            span?: {
                [key: string]: number;
            } | null;
        };
        /**
         * Pong
         * @description Answers `ping`.
         */
        Pong: {
            /**
             * Type
             * @default pong
             * @constant
             */
            type?: "pong";
            /**
             * Payload
             * @default null
             */
            payload?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ProblemDocument
         * @description The body of every error.
         *
         *     Args:
         *         code: stable, one for each kind of failure.
         *         subcode: stable and finer; the code itself where there is nothing finer.
         *         params: what the sentence in `detail` is about, for programs.
         *         can_retry: whether the same request may succeed later, unchanged.
         */
        ProblemDocument: {
            /** Type */
            type: string;
            /** Title */
            title: string;
            /** Status */
            status: number;
            /** Detail */
            detail: string;
            /**
             * Instance
             * @default null
             */
            instance?: string | null;
            /** Code */
            code: string;
            /**
             * Subcode
             * @default
             */
            subcode?: string;
            /**
             * Params
             * @default {}
             */
            params?: {
                [key: string]: string | number | boolean;
            };
            /**
             * Can Retry
             * @default false
             */
            can_retry?: boolean;
            /**
             * Request Id
             * @default null
             */
            request_id?: string | null;
            /**
             * Hint
             * @default null
             */
            hint?: string | null;
            /**
             * Errors
             * @default []
             */
            errors?: components["schemas"]["Place"][];
        };
        /**
         * Progress
         * @description How far a subscription is.
         *
         *     Args:
         *         snapshot: resume after this one: everything up to it has been sent, or had no rows; None before the first.
         *         mark: the event time up to which all streams had come at the newest commit.
         *         lag_ms: since the start of the last batch that was committed; it grows while the job stands still.
         *         phase: of the job.
         *         waiting: snapshots that wait for this client.
         */
        Progress: {
            /** Snapshot */
            snapshot: string | null;
            /** Mark */
            mark: string | null;
            /** Lag Ms */
            lag_ms: number | null;
            /** Phase */
            phase: string;
            /**
             * Waiting
             * @default 0
             */
            waiting?: number;
        };
        /**
         * ProgressFrame
         * @description Every `heartbeat_s`.
         */
        ProgressFrame: {
            /**
             * Type
             * @default progress
             * @constant
             */
            type?: "progress";
            /** Id */
            id: string;
            payload: components["schemas"]["Progress"];
        };
        /**
         * QueryIn
         * @description A one-time question. Ranges include both ends.
         *
         *     A result's time is the latest event time among its tuples; its key is what the join's main predicate compares on the
         *     side of the first stream.
         * @example {
         *       "from": "2026-01-31T12:00:00Z",
         *       "job": "matches",
         *       "where": "price > 100"
         *     }
         */
        QueryIn: {
            /**
             * Job
             * @description Its id or name.
             */
            job: string;
            /**
             * From
             * @default null
             */
            from?: (number | string) | null;
            /**
             * To
             * @default null
             */
            to?: (number | string) | null;
            /**
             * Key
             * @default null
             */
            key?: (boolean | number | string) | null;
            /**
             * Key From
             * @default null
             */
            key_from?: (boolean | number | string) | null;
            /**
             * Key To
             * @default null
             */
            key_to?: (boolean | number | string) | null;
            /**
             * Where
             * @default null
             */
            where?: string | null;
            /**
             * Select
             * @default null
             */
            select?: string[] | null;
            /**
             * Limit
             * @default null
             */
            limit?: number | null;
            /**
             * Cursor
             * @description Where an answer to the same question ended.
             * @default null
             */
            cursor?: string | null;
            /**
             * After
             * @description Only snapshots after this one.
             * @default null
             */
            after?: string | null;
            /**
             * Upto
             * @description Only snapshots up to this one.
             * @default null
             */
            upto?: string | null;
            /**
             * As Of
             * @description Of groups that change: what they were at a snapshot or a time.
             * @default null
             */
            as_of?: (number | string) | null;
            /**
             * History
             * @description Of groups that change: every change, and not each group's last value.
             * @default false
             */
            history?: boolean;
            /**
             * Aggregate
             * @description In place of rows, "count, sum(price)".
             * @default null
             */
            aggregate?: string | null;
            /**
             * By
             * @description One row of aggregates for each value of these columns.
             * @default null
             */
            by?: string[] | null;
            /**
             * Format
             * @default json
             * @enum {string}
             */
            format?: "json" | "ndjson" | "csv" | "arrow" | "parquet";
            /**
             * Timeout S
             * @description Time for the answer; what is there by then is given.
             * @default null
             */
            timeout_s?: number | null;
        };
        /**
         * Schema
         * @description What the rows are.
         *
         *     Args:
         *         groups: of groups that change, the columns that tell them apart: a row replaces that of its group, or ends it
         *             where its `op` is `delete`. Empty where a row is final.
         *         snapshot: the newest one that is not sent: what comes begins after it. For a question, the newest it covers.
         *         results: tells these results from those that the job had before it began anew; whoever goes on after a snapshot
         *             sends it back.
         */
        Schema: {
            /** Job */
            job: string;
            /** Job Name */
            job_name: string;
            /** Columns */
            columns: components["schemas"]["Column"][];
            /** @default null */
            key?: components["schemas"]["Column"] | null;
            /**
             * Groups
             * @default []
             */
            groups?: string[];
            /** Snapshot */
            snapshot: string | null;
            /** Results */
            results: string;
        };
        /**
         * SchemaFrame
         * @description Comes before all rows.
         */
        SchemaFrame: {
            /**
             * Type
             * @default schema
             * @constant
             */
            type?: "schema";
            /** Id */
            id: string;
            payload: components["schemas"]["Schema"];
        };
        /**
         * SocketLimits
         * @description What the websocket keeps to.
         */
        SocketLimits: {
            /** Frame Bytes */
            frame_bytes: number;
            /** Frames A Second */
            frames_a_second: number;
            /** Subscriptions */
            subscriptions: number;
            /** Queue Snapshots */
            queue_snapshots: number;
            /** Queue Bytes */
            queue_bytes: number;
            /** Snapshot Bytes */
            snapshot_bytes: number;
            /** Init S */
            init_s: number;
            /** Send S */
            send_s: number;
        };
        /**
         * Subscribe
         * @description Begin a continuous question: `schema`, then `next` and `progress`, until `complete`.
         */
        Subscribe: {
            /**
             * Type
             * @constant
             */
            type: "subscribe";
            /** Id */
            id: string;
            payload: components["schemas"]["Subscription"];
        };
        /**
         * Subscription
         * @description A continuous question.
         *
         *     Args:
         *         from_: `now`, `oldest`, or the id of the snapshot after which to go on.
         *         results: which results that snapshot is of, as their `schema` said; a job that begins anew may give ids again.
         *         backpressure: when the client is too slow, drop the oldest whole snapshots, or end the subscription.
         *         max_rate: snapshots a second at most; what comes faster waits, and is dropped as for a slow client.
         */
        Subscription: {
            /**
             * Job
             * @description Its id or name.
             */
            job: string;
            /**
             * Where
             * @default null
             */
            where?: string | null;
            /**
             * Select
             * @default null
             */
            select?: string[] | null;
            /**
             * From
             * @default now
             */
            from?: ("now" | "oldest") | string;
            /**
             * Results
             * @description Of the snapshot in `from`; see `schema`.
             * @default null
             */
            results?: string | null;
            /**
             * Backpressure
             * @default drop
             * @enum {string}
             */
            backpressure?: "drop" | "disconnect";
            /**
             * Max Rate
             * @default null
             */
            max_rate?: number | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
