// Made by npm run gen:api; not to be edited.
export interface paths {
    "/api/v1/queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Query Results
         * @description Ask for results by time, by key, with a filter; or for aggregates of them.
         */
        post: operations["query_results"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/results": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Results
         * @description The same as POST /queries, for the command line; conditions end up in logs of URLs.
         */
        get: operations["get_results"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Snapshots
         * @description The snapshots that are kept, newest first.
         */
        get: operations["list_snapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Validate Job
         * @description Check a query against what is registered. Mistakes are the answer, so the status is 200.
         *
         *     A draft is of no job yet: whether a job that has begun may become it, `POST /jobs/{id}/diff` tells.
         */
        post: operations["validate_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Explain Job
         * @description Show how a query would run, and what every operator would cost, from a sample of the streams.
         */
        post: operations["explain_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview Job
         * @description Show a few rows that a query would give, from samples of the streams, or why there are none. Nothing is started.
         *
         *     Samples, time and the answer are bounded, and so are previews side by side: one too many answers 429.
         */
        post: operations["preview_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Jobs
         * @description All jobs, newest first.
         */
        get: operations["list_jobs"];
        put?: never;
        /**
         * Create Job
         * @description Create a job. Its query is bound to its streams first, so what is wrong shows now.
         */
        post: operations["create_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Job
         * @description One job, by id or name.
         */
        get: operations["get_job"];
        put?: never;
        post?: never;
        /**
         * Delete Job
         * @description Delete a job with its state and its results. It is stopped first; when all is gone the job is not found.
         */
        delete: operations["delete_job"];
        options?: never;
        head?: never;
        /**
         * Change Job
         * @description Change a job. A running one restarts with the change at a batch boundary.
         *
         *     A change that does not fit the state joined so far needs `start_anew`. Where that state is in a data folder that
         *     this API does not see, the job's driver compares it, and the job fails where it does not fit.
         */
        patch: operations["change_job"];
        trace?: never;
    };
    "/api/v1/jobs/{id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Diff Job
         * @description Show what a change would do, without doing it; one that would be refused is refused here too.
         */
        post: operations["diff_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start Job
         * @description Let a job run; it goes on where it stopped.
         */
        post: operations["start_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop Job
         * @description Let a job stop after the batch that runs.
         */
        post: operations["stop_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restart Job
         * @description Stop a job after the batch that runs, and start it again.
         */
        post: operations["restart_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/rescale": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rescale Job
         * @description Give a job another number of slots. Units and state stay: unit u then runs in slot u mod slots.
         */
        post: operations["rescale_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/revisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Revisions
         * @description Earlier versions of a job, newest first.
         */
        get: operations["list_revisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Job Events
         * @description What happened to a job, newest first.
         */
        get: operations["list_job_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Job Metrics
         * @description What the job's drivers reported, for charts.
         */
        get: operations["get_job_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Job Logs
         * @description The end of a log of the job, of what this machine has; without places outside of the job's folder.
         */
        get: operations["get_job_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/rejected": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Rejected
         * @description Rows that are missing from the results, where the job ran on this host: counts, and rows, newest first.
         */
        get: operations["list_rejected"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/rejected/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download Rejected
         * @description All rows that are kept, oldest first.
         *
         *     In CSV a text that a spreadsheet would take for a formula has a `'` in front; JSON lines have it as it is.
         */
        get: operations["download_rejected"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Streams
         * @description All streams, newest first.
         */
        get: operations["list_streams"];
        put?: never;
        /**
         * Create Stream
         * @description Register a stream. Its source is not asked for anything yet; `test` does that.
         */
        post: operations["create_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Stream
         * @description Look at a stream without registering it: columns, first rows, and how skewed values are.
         *
         *     Its `time` may be missing: then `times` are the columns that may be it.
         */
        post: operations["test_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Stream
         * @description One stream, by id or name.
         */
        get: operations["get_stream"];
        put?: never;
        post?: never;
        /**
         * Delete Stream
         * @description Remove a stream; refused while a job uses it. Rows that were pushed into it are removed, too.
         */
        delete: operations["delete_stream"];
        options?: never;
        head?: never;
        /**
         * Change Stream
         * @description Change a stream. Jobs that are there keep the entry they were made with until they are changed themselves.
         */
        patch: operations["change_stream"];
        trace?: never;
    };
    "/api/v1/streams/{id}/sample": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sample Stream
         * @description Look at a registered stream.
         */
        post: operations["sample_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{id}/rows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Push Rows
         * @description Push rows into a stream of source `push`: JSON lines, one object a row. They are on disk when this answers.
         */
        post: operations["push_rows"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/relations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Relations
         * @description All relations, newest first.
         */
        get: operations["list_relations"];
        put?: never;
        /**
         * Create Relation
         * @description Register a relation. Its files are not looked at yet; `test` does that.
         */
        post: operations["create_relation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/relations/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Relation
         * @description Look at a relation without registering it: columns, first rows, size, and how skewed values are.
         */
        post: operations["test_relation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/relations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Relation
         * @description One relation, by id or name.
         */
        get: operations["get_relation"];
        put?: never;
        post?: never;
        /**
         * Delete Relation
         * @description Remove a relation, but not its files; refused while a job uses it.
         */
        delete: operations["delete_relation"];
        options?: never;
        head?: never;
        /**
         * Change Relation
         * @description Change a relation. Jobs that are there keep the entry they were made with until they are changed themselves.
         */
        patch: operations["change_relation"];
        trace?: never;
    };
    "/api/v1/relations/{id}/sample": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sample Relation
         * @description Look at a registered relation.
         */
        post: operations["sample_relation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/relations/{id}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Relation Versions
         * @description A relation's versions in each job that joins it: every job reads it for itself.
         */
        get: operations["list_relation_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/relations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Job Relations
         * @description The relations that a job joins, with their versions.
         */
        get: operations["list_job_relations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/relations/{id}/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refresh Relation
         * @description Have the running jobs that join a relation look for a new version now, whatever its `refresh` says.
         *
         *     Everybody's jobs do, so only the relation's owner or an admin may ask. They go on with the version that they have
         *     until the new one is whole.
         */
        post: operations["refresh_relation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream Results
         * @description Follow a job's results: each snapshot as soon as it is committed.
         */
        get: operations["stream_results"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/saved-queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Saved Queries
         * @description All kept questions, newest first.
         */
        get: operations["list_saved_queries"];
        put?: never;
        /**
         * Save Query
         * @description Keep a question under a name.
         */
        post: operations["save_query"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/saved-queries/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Saved Query
         * @description One, by id or name.
         */
        get: operations["get_saved_query"];
        put?: never;
        post?: never;
        /**
         * Delete Saved Query
         * @description Forget one.
         */
        delete: operations["delete_saved_query"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Events
         * @description What happened, newest first.
         */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/demos": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Demos
         * @description The demos there are.
         */
        get: operations["list_demos"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/demos/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start Demo
         * @description Register what a demo joins, create its job, and start it; what is there already is taken as it is.
         */
        post: operations["start_demo"];
        /**
         * Remove Demo
         * @description Delete a demo's job, and what it brought; what was changed, is used elsewhere or is somebody else's stays.
         */
        delete: operations["remove_demo"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Livez
         * @description The process answers; nothing else is looked at.
         */
        get: operations["livez"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readyz
         * @description 200 where requests can be served, else 503; what is checked is named one by one, at most once a second.
         */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/problems/{code}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Problem
         * @description What a problem's `type` points to.
         */
        get: operations["get_problem"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operators": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Operators
         * @description The join operators.
         */
        get: operations["list_operators"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/generators": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Generators
         * @description The kinds of generated streams, with their columns.
         */
        get: operations["list_generators"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Config
         * @description What a client must know of how this platform is set up; nothing secret.
         */
        get: operations["get_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log In
         * @description Log in: the answer sets a cookie that opens everything else, until it expires or is ended.
         */
        post: operations["log_in"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Log Out
         * @description End this login; the cookie opens nothing any more, wherever it was copied to.
         *
         *     The API keys that it made end as well, but for those that were made to go on (`ends_with_login: false`).
         */
        delete: operations["log_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Me
         * @description Who is logged in, or whose key this is.
         */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change Own Password
         * @description Change one's own password. All logins end, and the API keys that they made.
         *
         *     A browser that was logged in is given another cookie, and stays so.
         */
        put: operations["change_own_password"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Users
         * @description All users, newest first.
         */
        get: operations["list_users"];
        put?: never;
        /**
         * Create User
         * @description Make a user, who can log in at once.
         */
        post: operations["create_user"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get User
         * @description One user, by id or name.
         */
        get: operations["get_user"];
        put?: never;
        post?: never;
        /**
         * Delete User
         * @description Remove a user with their logins and keys. What they own stays, and belongs to nobody.
         */
        delete: operations["delete_user"];
        options?: never;
        head?: never;
        /**
         * Change User
         * @description Change a user's role, disable or enable them, or give them a new password.
         */
        patch: operations["change_user"];
        trace?: never;
    };
    "/api/v1/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Api Keys
         * @description One's own keys, newest first; also those that were revoked.
         */
        get: operations["list_api_keys"];
        put?: never;
        /**
         * Create Api Key
         * @description Make a key for oneself, with one's own role or less. The answer is the only place where it can be read.
         *
         *     A key that a key makes ends with it. One that a login makes ends with the login, unless it is asked to go on
         *     (`ends_with_login: false`), and always when the password is changed.
         */
        post: operations["create_api_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/api-keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke Api Key
         * @description Revoke a key: from now on it opens nothing, and neither do the keys that it made. Again changes nothing.
         */
        delete: operations["revoke_api_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Metrics
         * @description All metrics in Prometheus' text format; scrape with the key of a viewer.
         */
        get: operations["get_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Uploads
         * @description All uploaded files, by name.
         */
        get: operations["list_uploads"];
        put?: never;
        /**
         * Add Upload
         * @description Keep a small file: its bytes are the body. It is on disk when this answers.
         *
         *     The same bytes may be sent under one name again, which changes nothing; others are refused.
         */
        post: operations["add_upload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/uploads/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete Upload
         * @description Remove an uploaded file; refused while a stream, relation or job reads it.
         */
        delete: operations["delete_upload"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Files
         * @description Folders and files that streams and relations may read; nothing hidden.
         */
        get: operations["list_files"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/machines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Machines
         * @description All machines, by name.
         */
        get: operations["list_machines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AdaptiveFigures
         * @description The units of a join whose units come and go, as they were when the span ended; `stage` counts from 1.
         *
         *     Args:
         *         plan: how many times units had come, begun to drain, or left.
         *         units: units of R and of S that store, or nodes of a `ring`.
         *         draining: units that store nothing new and leave once they are empty.
         *         loads: of each subgroup, such as `R 0`, the share of its capacity that it stored when it was last asked in the
         *             span; of a `ring`, the share of their time that its nodes worked.
         *         best: N* of a ring, when it was last looked at in the span.
         *         model: what else was found then.
         */
        AdaptiveFigures: {
            /** Stage */
            stage: number;
            /** Plan */
            plan: number;
            /** Units */
            units: {
                [key: string]: number;
            };
            /** Draining */
            draining: {
                [key: string]: number;
            };
            /** Loads */
            loads?: {
                [key: string]: number;
            };
            /** Best */
            best?: number | null;
            model?: components["schemas"]["RingModel"] | null;
        };
        /**
         * AnswerLimits
         * @description What the answer keeps to.
         */
        AnswerLimits: {
            /** Rows */
            rows: number;
            /** Bytes */
            bytes: number;
            /** Seconds */
            seconds: number;
        };
        /**
         * AnswerOut
         * @description A JSON answer; it leaves as it is found, in this order.
         *
         *     Args:
         *         results: tells these results from those that the job had before it began anew.
         *         last_snapshot: the newest it covers; a subscription from it, of these results, goes on without gap or overlap.
         *         time: what a row's time is.
         *         key: what a row's key is; null for a join without one.
         *         groups: of groups that change, the columns that tell them apart.
         *         rows: arrays in the order of `schema`; integers and decimals beyond 2^53 are texts.
         *         cursor: asks for what follows, with the same question otherwise.
         *         truncated: there may be more than is here; `stopped_by` says what ended it: limit, rows, bytes, time or error.
         *         not_finite: how many NaN and infinities became null.
         *         error: what ended the answer half-way.
         */
        AnswerOut: {
            /** Job */
            job: string;
            /** Job Name */
            job_name: string;
            /** Results */
            results: string;
            /** Last Snapshot */
            last_snapshot: string;
            /** Time */
            time: string;
            key: components["schemas"]["Column"] | null;
            /**
             * Groups
             * @default []
             */
            groups?: string[];
            /** Schema */
            schema: components["schemas"]["Column"][];
            /** Rows */
            rows: unknown[][];
            /** Rows Given */
            rows_given: number;
            /** Cursor */
            cursor: string | null;
            /** Truncated */
            truncated: boolean;
            /** Stopped By */
            stopped_by: string | null;
            limits: components["schemas"]["AnswerLimits"];
            /** Not Finite */
            not_finite: number;
            /**
             * Blocks Read
             * @default 0
             */
            blocks_read?: number;
            /**
             * Blocks Wanted
             * @default 0
             */
            blocks_wanted?: number;
            /**
             * Blocks Stored
             * @default 0
             */
            blocks_stored?: number;
            /**
             * Rows Read
             * @default 0
             */
            rows_read?: number;
            /**
             * Snapshots
             * @default 0
             */
            snapshots?: number;
            error?: components["schemas"]["ProblemDocument"] | null;
        };
        /**
         * Asked
         * @description The running jobs that were told to look for a new version.
         */
        Asked: {
            /** Jobs */
            jobs: string[];
        };
        /**
         * BetterOrder
         * @description A way to join the streams that has clearly less work now; `operator` is what a change of the job says.
         */
        BetterOrder: {
            /** Plan */
            plan: string;
            /** Setting */
            setting: string;
            /** Operator */
            operator: {
                [key: string]: unknown;
            };
            /** Times */
            times: number;
        };
        /**
         * ChangeOut
         * @description A field that differs; `effect` is keeps_state or starts_anew.
         *
         *     `reason` says why it begins anew, where the same change of another job would keep its state; null else.
         */
        ChangeOut: {
            /** Field */
            field: string;
            /** Before */
            before: unknown;
            /** After */
            after: unknown;
            /** Effect */
            effect: string;
            /** Reason */
            reason?: string | null;
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
         * Decision
         * @description Units came, begin to drain, or left, from batch `batch` on.
         *
         *     Args:
         *         side: R or S, and `group` is a subgroup of it; or ring.
         *         units: how many stored before.
         *         bytes: what the subgroup stored, and `load` the share of its capacity that this was; of a ring, the share of
         *             their time that nodes worked.
         *         wish: how many units more or fewer that asked for, before bounds.
         *         added, drained, left: numbers of units.
         *         way: of a ring, `passive` where what is stored moves by its age, `aggressive` where it moved at once.
         */
        Decision: {
            /** Stage */
            stage: number;
            /** Plan */
            plan: number;
            /** Batch */
            batch: number;
            /** At Us */
            at_us: number;
            /** Side */
            side: string;
            /** Group */
            group: number;
            /** Units */
            units: number;
            /** Bytes */
            bytes: number;
            /** Load */
            load: number;
            /** Wish */
            wish: number;
            /** Added */
            added: number[];
            /** Drained */
            drained: number[];
            /** Left */
            left: number[];
            /**
             * Way
             * @default
             */
            way?: string;
        };
        /**
         * DemoOut
         * @description A demo, and the job that it runs as and whose that is, if somebody started it.
         */
        DemoOut: {
            /** Name */
            name: string;
            /** Title */
            title: string;
            /** Text */
            text: string;
            /** Query */
            query: string;
            /** Job Id */
            job_id: string | null;
            /** Owner Id */
            owner_id: string | null;
        };
        /**
         * Diagnostics
         * @description What is wrong with a draft, for an editor; empty where it is right.
         */
        Diagnostics: {
            /** Valid */
            valid: boolean;
            /** Diagnostics */
            diagnostics: components["schemas"]["Place"][];
            /** Columns */
            columns: components["schemas"]["Column"][];
            /** Summary */
            summary: string | null;
        };
        /**
         * Diff
         * @description What a change would do.
         *
         *     Args:
         *         drops: what is lost where the job begins anew; null where it does not, or has never run.
         */
        Diff: {
            /** Changes */
            changes: components["schemas"]["ChangeOut"][];
            /** Starts Anew */
            starts_anew: boolean;
            drops?: components["schemas"]["Dropped"] | null;
        };
        /**
         * Draft
         * @description A query with all that decides how it runs.
         *
         *     Args:
         *         streams: names; unless given, those that the query names.
         *         queries: further ones, by name; their results are those of `job:name`.
         *         operator: `{name: auto}` or another, with its knobs.
         *         results: where, select, retain, snapshot and store, as in a join file.
         *         run: slots, files_per_batch, offsets_per_batch, heartbeat, every, strict, driver_memory; `until_end` lets the
         *             job end with its streams.
         * @example {
         *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction AND bids.price >= auctions.reserve WITHIN 10 SECONDS"
         *     }
         */
        Draft: {
            /** Query */
            query: string;
            /** Streams */
            streams?: string[] | null;
            /** Queries */
            queries?: {
                [key: string]: components["schemas"]["FurtherQuery"];
            };
            operator?: components["schemas"]["OperatorIn"] | null;
            results?: components["schemas"]["ResultsIn"] | null;
            run?: components["schemas"]["RunIn"] | null;
        };
        /**
         * Dropped
         * @description What a job that begins anew leaves behind.
         *
         *     Args:
         *         state_at: the start of the last batch that its state has, or of the last one that its driver told of where the
         *             store of its results does not answer; null where it has had none since it last began anew.
         *         results: how many rows all its queries have found so far; they stay in the store, but are no longer the job's.
         *             Null where nobody can tell.
         *         could_go_on: whether the job could go on with the state as it is, so that nothing but the wish drops it; null
         *             where the state is on a machine that this API cannot look at.
         */
        Dropped: {
            /** State At */
            state_at: string | null;
            /** Results */
            results: number | null;
            /** Could Go On */
            could_go_on: boolean | null;
        };
        /**
         * EventOut
         * @description Something that happened.
         */
        EventOut: {
            /** Id */
            id: string;
            /** Job Id */
            job_id: string | null;
            /** At */
            at: string | null;
            /** Kind */
            kind: string;
            /** Severity */
            severity: string;
            /** Message */
            message: string;
            /** Data */
            data: {
                [key: string]: unknown;
            };
            /** Actor Id */
            actor_id: string | null;
        };
        /**
         * Explanation
         * @description How a draft would run, and what each operator would cost.
         */
        Explanation: {
            /** Plan */
            plan: {
                [key: string]: unknown;
            };
            /** Text */
            text: string;
            /** Columns */
            columns: components["schemas"]["Column"][];
        };
        /**
         * Figures
         * @description Rates, counts and times of a span, by stream where they are of one.
         *
         *     Reports of older versions tell of no stages. What becomes of rows that joins decide on is that of all stages.
         *     `order` is there where `auto` chose the order of three streams and more from known rates, and rates are known now;
         *     `late_files` says of streams with late rows that files were read in another order than that of the numbers in their
         *     names; `reading` and `relations` are there where relations are joined, `state_traffic` where a store has the state.
         *     `reconnects` are starts of the query, inside its driver, after a Python worker did not connect to Spark in time.
         *     `forwarded` is there where units hand tuples on to one another, and `imbalance` then has IF by stream as the span
         *     ended: by what share of the mean the unit with the most stored rows is above it.
         */
        Figures: {
            /**
             * Open Rows
             * @default 0
             */
            open_rows?: number;
            /**
             * Unmatched Rows
             * @default 0
             */
            unmatched_rows?: number;
            /**
             * Late After Final
             * @default 0
             */
            late_after_final?: number;
            /**
             * Reconnects
             * @default 0
             */
            reconnects?: number;
            /** Stages */
            stages?: components["schemas"]["StageFigures"][];
            /** Units */
            units?: components["schemas"]["UnitFigures"][];
            /** Adaptive */
            adaptive?: components["schemas"]["AdaptiveFigures"][];
            /** Decisions */
            decisions?: components["schemas"]["Decision"][];
            order?: components["schemas"]["OrderFigures"] | null;
            /** Late Files */
            late_files?: {
                [key: string]: string;
            };
            reading?: components["schemas"]["ReadingFigures"] | null;
            /** Relations */
            relations?: {
                [key: string]: components["schemas"]["RelationFigures"];
            };
            state_traffic?: components["schemas"]["StateTraffic"] | null;
            forwarded?: components["schemas"]["Forwarded"] | null;
            /** Imbalance */
            imbalance?: {
                [key: string]: number;
            };
        } & {
            [key: string]: unknown;
        };
        /**
         * FileOut
         * @description A file or folder: `path` is what a `spec` says, `format` is guessed from the name, `bytes` are of a file.
         */
        FileOut: {
            /** Name */
            name: string;
            /** Path */
            path: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "folder" | "file";
            /** Format */
            format: ("csv" | "jsonl" | "parquet" | "arrow") | null;
            /** Bytes */
            bytes: number | null;
        };
        /**
         * Files
         * @description A part of a folder, folders first. `is_cut` says that it has more than are ever listed.
         *
         *     `path` is null for the list of the allowed folders themselves, and `parent` in one of them.
         */
        Files: {
            /** Path */
            path: string | null;
            /** Parent */
            parent: string | null;
            /** Data */
            data: components["schemas"]["FileOut"][];
            /** Has More */
            has_more: boolean;
            /** Is Cut */
            is_cut: boolean;
        };
        /**
         * Forwarded
         * @description What units of a chain or a ring, or hosts of segments, handed on to one another in the span.
         */
        Forwarded: {
            /**
             * Blocks
             * @default 0
             */
            blocks?: number;
            /**
             * Tuples
             * @default 0
             */
            tuples?: number;
            /**
             * Bytes
             * @default 0
             */
            bytes?: number;
        };
        /**
         * FurtherQuery
         * @description A query beside a job's own, over the same streams and the same stored tuples, with results of its own.
         *
         *     Args:
         *         stopped: it ends: its results are completed and stay, its tuples and its index go.
         */
        FurtherQuery: {
            /** Query */
            query: string;
            /**
             * Stopped
             * @default false
             */
            stopped?: boolean;
        };
        /**
         * GeneratorOut
         * @description A kind of made-up stream.
         */
        GeneratorOut: {
            /** Kind */
            kind: string;
            /** Columns */
            columns: components["schemas"]["Column"][];
        };
        /**
         * JobChange
         * @description What is to change; sections that are not given stay.
         *
         *     Args:
         *         queries: each is added, or changed; others stay. A new one begins with the pairs whose later tuple comes then.
         *         refresh_streams: take over the streams and relations as they are registered now.
         *         start_anew: agree that the job begins again without its state, where the change needs that, and where it may
         *             need it: changed queries of a job whose state is in a data folder that this API does not see, and a job
         *             that is `failed` and stays as it is. Results kept so far stay in the store, under the job's earlier name,
         *             until the job is deleted.
         * @example {
         *       "run": {
         *         "slots": 2
         *       }
         *     }
         */
        JobChange: {
            /** Query */
            query?: string | null;
            /** Queries */
            queries?: {
                [key: string]: components["schemas"]["FurtherQuery"];
            } | null;
            operator?: components["schemas"]["OperatorIn"] | null;
            results?: components["schemas"]["ResultsIn"] | null;
            run?: components["schemas"]["RunIn"] | null;
            /**
             * Refresh Streams
             * @default false
             */
            refresh_streams?: boolean;
            /**
             * Start Anew
             * @default false
             */
            start_anew?: boolean;
        };
        /**
         * JobIn
         * @description A job to create; it is stopped unless `start` is true.
         * @example {
         *       "name": "bids that win",
         *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction AND bids.price >= auctions.reserve WITHIN 10 SECONDS"
         *     }
         */
        JobIn: {
            /** Query */
            query: string;
            /** Streams */
            streams?: string[] | null;
            /** Queries */
            queries?: {
                [key: string]: components["schemas"]["FurtherQuery"];
            };
            operator?: components["schemas"]["OperatorIn"] | null;
            results?: components["schemas"]["ResultsIn"] | null;
            run?: components["schemas"]["RunIn"] | null;
            /** Name */
            name: string;
            /**
             * Start
             * @default false
             */
            start?: boolean;
        };
        /**
         * JobOut
         * @description A job. `wanted` is what people asked for, `observed` what was seen last, `phase` one word for both.
         */
        JobOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Version */
            version: number;
            /** Query */
            query: string;
            /** Queries */
            queries?: {
                [key: string]: components["schemas"]["FurtherQuery"];
            };
            /** Streams */
            streams: string[];
            /** Relations */
            relations: string[];
            /** Operator */
            operator: {
                [key: string]: unknown;
            };
            /** Results */
            results: {
                [key: string]: unknown;
            };
            /** Run */
            run: {
                [key: string]: unknown;
            };
            /** Wanted */
            wanted: string;
            /** Wanted Since */
            wanted_since: string | null;
            /** Observed */
            observed: string;
            /** Observed Since */
            observed_since: string | null;
            /** Phase */
            phase: string;
            /** Reason */
            reason: string | null;
            /** Generation */
            generation: number;
            /** Failures */
            failures: number;
            last_run: components["schemas"]["Run"] | null;
            last_start: components["schemas"]["Start"] | null;
            /** Owner Id */
            owner_id: string | null;
            /** Created At */
            created_at: string | null;
            /** Updated At */
            updated_at: string | null;
        };
        /**
         * KeyCreated
         * @description A new key; `key` is shown this once and kept nowhere.
         */
        KeyCreated: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Start */
            start: string;
            /**
             * Role
             * @enum {string}
             */
            role: "viewer" | "operator" | "admin";
            /** User Id */
            user_id: string;
            /** Created At */
            created_at: string | null;
            /** Used At */
            used_at: string | null;
            /** Revoked At */
            revoked_at: string | null;
            /** Expires At */
            expires_at: string | null;
            /** Made By Key */
            made_by_key: string | null;
            /** Ends With Login */
            ends_with_login: boolean;
            /** Key */
            key: string;
        };
        /**
         * KeyIn
         * @description A key to make.
         */
        KeyIn: {
            /** Name */
            name: string;
            /**
             * Role
             * @default viewer
             * @enum {string}
             */
            role?: "viewer" | "operator" | "admin";
            /**
             * Days
             * @description How long it holds; as long as STREAMJOIN_API_KEY_DAYS says unless given.
             */
            days?: number | null;
            /**
             * Ends With Login
             * @description Whether a key that a login makes ends with it: when it logs out, or expires. False is for programs that go on without anybody logged in. Says nothing of a key that a key makes.
             * @default true
             */
            ends_with_login?: boolean;
        };
        /**
         * KeyOut
         * @description A key, without what opens something. `start` are its first letters.
         *
         *     `expires_at` is null for keys of versions that made keys without an end, `made_by_key` the key that made it, and
         *     `ends_with_login` whether it ends with the login that made it.
         */
        KeyOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Start */
            start: string;
            /**
             * Role
             * @enum {string}
             */
            role: "viewer" | "operator" | "admin";
            /** User Id */
            user_id: string;
            /** Created At */
            created_at: string | null;
            /** Used At */
            used_at: string | null;
            /** Revoked At */
            revoked_at: string | null;
            /** Expires At */
            expires_at: string | null;
            /** Made By Key */
            made_by_key: string | null;
            /** Ends With Login */
            ends_with_login: boolean;
        };
        /**
         * LogIn
         * @description A name and its password.
         */
        LogIn: {
            /** Name */
            name: string;
            /**
             * Password
             * Format: password
             */
            password: string;
        };
        /**
         * LookedOut
         * @description What was looked at of a stream; `first` and `last` are event times.
         */
        LookedOut: {
            /** Name */
            name: string;
            /** Rows */
            rows: number;
            /** Bad Records */
            bad_records: number;
            /** Large Rows */
            large_rows: number;
            /** First */
            first: string | null;
            /** Last */
            last: string | null;
        };
        /**
         * MachineOut
         * @description A machine whose worker said in the last day that it runs jobs.
         *
         *     Args:
         *         takes_jobs: it said so in the last few seconds.
         *         jobs: so many have a driver there now.
         *         free_bytes: of its memory, when it said so last.
         *         folder: which data folder it has; machines that share one have the same.
         */
        MachineOut: {
            /** Name */
            name: string;
            /** Takes Jobs */
            takes_jobs: boolean;
            /** Jobs */
            jobs: number;
            /** Free Bytes */
            free_bytes: number;
            /** Folder */
            folder: string;
            /** Seen At */
            seen_at: string | null;
        };
        /**
         * Me
         * @description Who asks. `id` is null where auth is off; `role` is the key's where one was used that has less.
         */
        Me: {
            /** Id */
            id: string | null;
            /** Name */
            name: string;
            /**
             * Role
             * @enum {string}
             */
            role: "viewer" | "operator" | "admin";
            /** Key Id */
            key_id: string | null;
        };
        /**
         * Metrics
         * @description Reports of a job, oldest first; thinned out with age.
         */
        Metrics: {
            /** Points */
            points: components["schemas"]["Point"][];
        };
        /** @description which operator runs the join, and its knobs */
        OperatorIn: {
            /**
             * @description the one that fits the query
             * @constant
             */
            name?: "auto";
            /**
             * @description which units a tuple goes to
             * @enum {string}
             */
            routing?: "random" | "hash" | "contrand";
            /** @description units that store the first stream (m) */
            r_units?: number;
            /** @description units that store the second stream (n) */
            s_units?: number;
            /** @description contrand: subgroups of r_units (d), at most as many as units */
            r_groups?: number;
            /** @description contrand: subgroups of s_units (e), at most as many as units */
            s_groups?: number;
            /** @description contrand on a band alone: the d - 1 keys at which R's next subgroup begins, rising */
            r_bounds?: number[];
            /** @description contrand on a band alone: the e - 1 keys at which S's next subgroup begins, rising */
            s_bounds?: number[];
            /**
             * @description units are added and taken away while the job runs, by how much is stored
             * @default false
             */
            adaptive?: boolean;
            /** @description adaptive: MiB that a unit is to store at most (C) */
            capacity?: number;
            /** @description adaptive: units of each stream that stay */
            min_units?: number;
            /** @description adaptive: units of each stream at most */
            max_units?: number;
            /** @description adaptive: above this share of its capacity a subgroup asks for units */
            add_above?: number;
            /** @description adaptive: below this share of its capacity a subgroup gives units away */
            drain_below?: number;
            /** @description adaptive: the share of its capacity that a subgroup is to have then */
            target?: number;
            /**
             * Format: span
             * @description adaptive: how often units are asked what they store; at most once a batch
             */
            check_every?: string;
            /** @description adaptive: how many times in a row the answer must be the same */
            confirmations?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description join-biclique, BiStream (SIGMOD 2015)
             * @constant
             */
            name: "biclique";
            /**
             * @description which units a tuple goes to
             * @enum {string}
             */
            routing?: "random" | "hash" | "contrand";
            /** @description units that store the first stream (m) */
            r_units?: number;
            /** @description units that store the second stream (n) */
            s_units?: number;
            /** @description contrand: subgroups of r_units (d), at most as many as units */
            r_groups?: number;
            /** @description contrand: subgroups of s_units (e), at most as many as units */
            s_groups?: number;
            /** @description contrand on a band alone: the d - 1 keys at which R's next subgroup begins, rising */
            r_bounds?: number[];
            /** @description contrand on a band alone: the e - 1 keys at which S's next subgroup begins, rising */
            s_bounds?: number[];
            /**
             * @description units are added and taken away while the job runs, by how much is stored
             * @default false
             */
            adaptive?: boolean;
            /** @description adaptive: MiB that a unit is to store at most (C) */
            capacity?: number;
            /** @description adaptive: units of each stream that stay */
            min_units?: number;
            /** @description adaptive: units of each stream at most */
            max_units?: number;
            /** @description adaptive: above this share of its capacity a subgroup asks for units */
            add_above?: number;
            /** @description adaptive: below this share of its capacity a subgroup gives units away */
            drain_below?: number;
            /** @description adaptive: the share of its capacity that a subgroup is to have then */
            target?: number;
            /**
             * Format: span
             * @description adaptive: how often units are asked what they store; at most once a batch
             */
            check_every?: string;
            /** @description adaptive: how many times in a row the answer must be the same */
            confirmations?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description join-matrix, BiStream's baseline
             * @constant
             */
            name: "matrix";
            /** @description partitions of the first stream */
            rows?: number;
            /** @description partitions of the second stream */
            columns?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description SplitJoin (USENIX ATC 2016)
             * @constant
             */
            name: "splitjoin";
            /** @description join cores (k) */
            cores?: number;
            /**
             * @description tuples of a stream that a core stores in a row before the next core's turn
             * @default 1
             */
            turn_tuples?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description handshake chain, ESJ
             * @constant
             */
            name: "handshake";
            /** @description workers in the line (m) */
            workers?: number;
            /** @description tuples of a block, which are sent on together */
            block?: number | "auto";
            /**
             * @description false: each worker keeps tuples of a fixed age, an equal part of the window; needs a window
             * @default true
             */
            balance?: boolean;
            /**
             * @description how many tuples more than its successor a worker must have before it sends any on
             * @default 0
             */
            threshold?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description ring of state slices, PSP (EDBT 2009)
             * @constant
             */
            name: "ring";
            /** @description nodes in the ring (N), each with a slice of every stream's window */
            nodes?: number;
            /** @description for streams with little to keep, how many nodes share their window, such as {a: 1} */
            lengths?: {
                [key: string]: number;
            } | string;
            /** @description by stream, the order in which its rows meet the others, such as {a: [b, c]} */
            orders?: {
                [key: string]: string[];
            } | string;
            /**
             * @description nodes are added and taken away while the job runs, and slices follow the rates
             * @default false
             */
            adaptive?: boolean;
            /** @description adaptive: nodes that stay */
            min_nodes?: number;
            /** @description adaptive: nodes at most */
            max_nodes?: number;
            /** @description adaptive: nodes that work a larger share of their time are too few */
            add_above?: number;
            /** @description adaptive: the share of their time that nodes are to work then */
            target?: number;
            /**
             * Format: span
             * @description adaptive: how often rates are looked at; at most once a batch
             */
            check_every?: string;
            /** @description adaptive: how many times in a row the answer must be the same */
            confirmations?: number;
            /** @description adaptive: the weight of the newest look in the mean of all */
            smoothing?: number;
            /**
             * @description adaptive: what the number of nodes is chosen for: latency (N*), or output rate (all nodes there may be)
             * @enum {string}
             */
            objective?: "latency" | "rate";
            /** @description adaptive: microseconds to compare a pair (T_j) */
            pair_us?: number;
            /** @description adaptive: microseconds to send and receive a row (T_s) */
            send_us?: number;
            /** @description adaptive: microseconds from a node to the next (T_n) */
            hop_us?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description aligned tuple routing, ATR (baseline of PSP, EDBT 2009)
             * @constant
             */
            name: "aligned";
            /** @description nodes (N), which take segments in turn */
            nodes?: number;
            /**
             * Format: span
             * @description how much event time a segment covers (L), far longer than a window
             */
            segment?: string;
            /** @description the stream whose rows go to one node each, as the query calls it */
            master?: string;
            /** @description by stream, the order in which its rows meet the others, such as {a: [b, c]} */
            orders?: {
                [key: string]: string[];
            } | string;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description coordinated tuple routing, CTR (baseline of PSP, EDBT 2009)
             * @constant
             */
            name: "coordinated";
            /** @description nodes (N) that have segments */
            nodes?: number;
            /** @description on how many nodes each row is stored (c) */
            copies?: number;
            /**
             * Format: span
             * @description how much event time a segment covers (L)
             */
            segment?: string;
            /** @description by stream, the order in which its rows meet the others, such as {a: [b, c]} */
            orders?: {
                [key: string]: string[];
            } | string;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description as-of join, by versions of each key
             * @constant
             */
            name: "asof";
            /** @description units that share the keys */
            units?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description a relation, sorted once and looked up
             * @constant
             */
            name: "lookup";
            /** @description units that look rows up */
            units?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description semi-stream balanced join, SSBJ (DAPD 2019)
             * @constant
             */
            name: "ssbj";
            /** @description units that share the join values */
            units?: number;
            /** @description MiB that all units together may take for rows of the relation and tuples that wait */
            memory?: number;
            /** @description tuples a second that are joined as they come, however much memory that takes */
            rate?: number | string;
            /** @description parts in which each unit reads its rows of the relation (k) */
            partitions?: number;
            /** @description parts of the relation that a batch reads */
            steps?: number;
            /**
             * @description how many times as much memory the other place must take before a value moves (s_f)
             * @default 1
             */
            switching_factor?: number;
            /**
             * @description rounds through the relation until cached values are looked at again
             * @default 10
             */
            eviction_period?: number;
            /**
             * @description whether a cached value's own entry counts as memory, or not, as in the paper
             * @default bytes
             * @enum {string}
             */
            inequality?: "bytes" | "paper";
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description MESHJOIN, the baseline of SSBJ (DAPD 2019)
             * @constant
             */
            name: "meshjoin";
            /** @description units that share the join values */
            units?: number;
            /** @description MiB that all units together may take for rows of the relation and tuples that wait */
            memory?: number;
            /** @description tuples a second that are joined as they come, however much memory that takes */
            rate?: number | string;
            /** @description parts in which each unit reads its rows of the relation (k) */
            partitions?: number;
            /** @description parts of the relation that a batch reads */
            steps?: number;
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description Spark's own stream-stream join
             * @constant
             */
            name: "spark";
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description Spark's own stream-static join, with the relation broadcast
             * @constant
             */
            name: "spark-broadcast";
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        } | {
            /**
             * @description Spark's own stream-static join, with both sides shuffled and merged
             * @constant
             */
            name: "spark-shuffled";
            /**
             * Format: span
             * @description how much event time one segment of the chained index covers
             */
            archive_period?: string;
            /**
             * @description how partners are found among stored tuples
             * @default auto
             * @enum {string}
             */
            index?: "auto" | "hash" | "tree" | "scan";
            /** @description the condition of the query that is indexed, as it is written there */
            main?: string;
            /**
             * @description the order in which results leave
             * @default none
             * @enum {string}
             */
            ordering?: "none" | "outer" | "inner" | "total";
            /** @description of three streams and more, what is joined with what, such as [[a, b], c] */
            tree?: unknown[] | string;
        };
        /**
         * OperatorOut
         * @description An operator that a job may ask for.
         *
         *     Args:
         *         settings: its knobs: the JSON Schema of `operator` in a join file that names it.
         *         runs_jobs: whether a job may run on it; others are there to be compared with.
         */
        OperatorOut: {
            /** Name */
            name: string;
            /** System */
            system: string;
            /** Settings */
            settings: {
                [key: string]: unknown;
            };
            /** Runs Jobs */
            runs_jobs: boolean;
        };
        /**
         * OrderFigures
         * @description The order of joins that `auto` chose, and what rates have come to since; all by prediction.
         *
         *     Args:
         *         chosen_for, rates: rows a second of event time, by stream: when it was chosen, and lately.
         *         better: None where no other order is clearly better.
         *         text: all of it in a sentence.
         */
        OrderFigures: {
            /** Plan */
            plan: string;
            /** Chosen For */
            chosen_for: {
                [key: string]: number;
            };
            /** Rates */
            rates: {
                [key: string]: number;
            };
            better?: components["schemas"]["BetterOrder"] | null;
            /** Text */
            text: string;
        };
        /** Page[EventOut] */
        Page_EventOut_: {
            /** Data */
            data: components["schemas"]["EventOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[JobOut] */
        Page_JobOut_: {
            /** Data */
            data: components["schemas"]["JobOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[KeyOut] */
        Page_KeyOut_: {
            /** Data */
            data: components["schemas"]["KeyOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[MachineOut] */
        Page_MachineOut_: {
            /** Data */
            data: components["schemas"]["MachineOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[RelationOut] */
        Page_RelationOut_: {
            /** Data */
            data: components["schemas"]["RelationOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[Revision] */
        Page_Revision_: {
            /** Data */
            data: components["schemas"]["Revision"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[SavedQueryOut] */
        Page_SavedQueryOut_: {
            /** Data */
            data: components["schemas"]["SavedQueryOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[SnapshotOut] */
        Page_SnapshotOut_: {
            /** Data */
            data: components["schemas"]["SnapshotOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[StreamOut] */
        Page_StreamOut_: {
            /** Data */
            data: components["schemas"]["StreamOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[UploadOut] */
        Page_UploadOut_: {
            /** Data */
            data: components["schemas"]["UploadOut"][];
            /** Has More */
            has_more: boolean;
        };
        /** Page[UserOut] */
        Page_UserOut_: {
            /** Data */
            data: components["schemas"]["UserOut"][];
            /** Has More */
            has_more: boolean;
        };
        /**
         * PasswordChange
         * @description One's own new password, with the one before.
         */
        PasswordChange: {
            /**
             * Old
             * Format: password
             */
            old: string;
            /**
             * New
             * Format: password
             */
            new: string;
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
            /** Pointer */
            pointer?: string | null;
            /** Detail */
            detail: string;
            /** Span */
            span?: {
                [key: string]: number;
            } | null;
        };
        /**
         * Point
         * @description What a driver reported for a span of time.
         */
        Point: {
            /** At */
            at: string | null;
            /** Span S */
            span_s: number;
            /** Generation */
            generation: number;
            figures: components["schemas"]["Figures"];
        };
        /**
         * PredictedReading
         * @description What was predicted of a join with a relation before its start; `text` alone says why nothing was.
         *
         *     Args:
         *         rate_per_s: what units join in a second of their own work, if as many rows come as they have memory for.
         *         memory_bytes: what they may take, or what a given rate, `asked_per_s`, takes.
         *         problem: what the start warned of.
         */
        PredictedReading: {
            /** Text */
            text: string;
            /** Rate Per S */
            rate_per_s?: number | null;
            /** Rows Read Per Tuple */
            rows_read_per_tuple?: number | null;
            /** Cached Share */
            cached_share?: number | null;
            /** Memory Bytes */
            memory_bytes?: number | null;
            /** Asked Per S */
            asked_per_s?: number | null;
            /** Free Bytes */
            free_bytes?: number | null;
            /** Problem */
            problem?: string | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * PreviewOut
         * @description A preview; `cut_off` where time ran out before all sampled rows were joined, and `text` is for people.
         */
        PreviewOut: {
            /** Note */
            note: string;
            /** Streams */
            streams: components["schemas"]["LookedOut"][];
            /** Cut Off */
            cut_off: boolean;
            /** Queries */
            queries: components["schemas"]["RowsOut"][];
            /** Text */
            text: string;
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
            /** Instance */
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
            /** Request Id */
            request_id?: string | null;
            /** Hint */
            hint?: string | null;
            /**
             * Errors
             * @default []
             */
            errors?: components["schemas"]["Place"][];
        };
        /**
         * ProblemOut
         * @description What a problem's code or subcode means; a subcode has no status and no retry of its own.
         */
        ProblemOut: {
            /** Code */
            code: string;
            /** Status */
            status: number | null;
            /** Title */
            title: string;
            /** Can Retry */
            can_retry: boolean | null;
        };
        /**
         * Pushed
         * @description What became of posted rows.
         */
        Pushed: {
            /** Rows */
            rows: number;
            /** Duplicate */
            duplicate: boolean;
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
            /** From */
            from?: (number | string) | null;
            /** To */
            to?: (number | string) | null;
            /** Key */
            key?: (boolean | number | string) | null;
            /** Key From */
            key_from?: (boolean | number | string) | null;
            /** Key To */
            key_to?: (boolean | number | string) | null;
            /** Where */
            where?: string | null;
            /** Select */
            select?: string[] | null;
            /** Limit */
            limit?: number | null;
            /**
             * Cursor
             * @description Where an answer to the same question ended.
             */
            cursor?: string | null;
            /**
             * After
             * @description Only snapshots after this one.
             */
            after?: string | null;
            /**
             * Upto
             * @description Only snapshots up to this one.
             */
            upto?: string | null;
            /**
             * As Of
             * @description Of groups that change: what they were at a snapshot or a time.
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
             */
            aggregate?: string | null;
            /**
             * By
             * @description One row of aggregates for each value of these columns.
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
             */
            timeout_s?: number | null;
        };
        /**
         * ReadingFigures
         * @description How units joined a relation; see `reading` of a report (docs/join-file.md).
         *
         *     Args:
         *         counts: of the span, added up over units.
         *         holding: what they have in memory, and what waits, as the span ended.
         *         units, at_once: how many there are, and how many of them work at the same time.
         *         rate_per_s: tuples in a second of their own work, without intake and what Spark takes for a batch.
         *         rows_read_per_tuple, cached_share: None of a relation that is sorted and looked up.
         */
        ReadingFigures: {
            /** Counts */
            counts: {
                [key: string]: number;
            };
            /** Holding */
            holding: {
                [key: string]: number;
            };
            /** Units */
            units: number;
            /**
             * At Once
             * @default 1
             */
            at_once?: number;
            /** Rate Per S */
            rate_per_s?: number | null;
            /** Rows Read Per Tuple */
            rows_read_per_tuple?: number | null;
            /** Cached Share */
            cached_share?: number | null;
            predicted?: components["schemas"]["PredictedReading"] | null;
        };
        /**
         * RejectedCount
         * @description Rows of one stream that are missing for one reason, of all runs of a job since it began or began anew.
         *
         *     Args:
         *         kept: how many of them can be looked at; the others are counted only.
         *         meaning: the reason in words.
         */
        RejectedCount: {
            /** Stream */
            stream: string;
            /** Reason */
            reason: string;
            /** Rows */
            rows: number;
            /** Kept */
            kept: number;
            /** Meaning */
            meaning: string;
        };
        /**
         * RejectedPage
         * @description Counts of the whole job, whatever rows were asked for, and a page of rows. It may hold fewer rows than asked for
         *     although there are more, where they are long.
         */
        RejectedPage: {
            /** Data */
            data: components["schemas"]["RejectedRow"][];
            /** Has More */
            has_more: boolean;
            /** Counts */
            counts: components["schemas"]["RejectedCount"][];
        };
        /**
         * RejectedRow
         * @description A row that was put aside.
         *
         *     Args:
         *         batch, at: the batch that read it, and when that began.
         *         source: the file below its stream's folder, or topic and partition.
         *         position: its place in the source, in `unit`s: line (from 1), row (from 0) or offset.
         *         detail: why it could not be joined.
         *         record: its text; null for a tombstone, and where it is not UTF-8.
         *         record_base64: its bytes, where it is not UTF-8.
         *         truncated: only its first 64 KiB are here.
         */
        RejectedRow: {
            /** Id */
            id: string;
            /** Stream */
            stream: string;
            /** Reason */
            reason: string;
            /** Batch */
            batch: number;
            /** At */
            at: string | null;
            /** Source */
            source: string;
            /** Unit */
            unit: string;
            /** Position */
            position: number;
            /** Detail */
            detail: string;
            /** Record */
            record: string | null;
            /** Record Base64 */
            record_base64: string | null;
            /** Truncated */
            truncated: boolean;
        };
        /**
         * RelationChange
         * @description What is to change; a job takes it over when the job itself is changed with `refresh_streams`.
         * @example {
         *       "spec": {
         *         "path": "/data/customers",
         *         "schema": {
         *           "id": "int64",
         *           "name": "string"
         *         },
         *         "source": "parquet"
         *       }
         *     }
         */
        RelationChange: {
            /** Spec */
            spec?: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "sql" | "cassandra";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /**
                 * Format: span
                 * @description how often it is looked at while the job runs, and read anew if it has changed, such as 10min
                 */
                refresh?: string;
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description postgresql://user:password@host/database, or sqlite:///a/file.db; the password is never shown */
                url?: string;
                /** @description a table or materialized view, as it is written there */
                table?: string;
                /** @description some nodes of the cluster, such as ["127.0.0.1"] */
                hosts?: string[];
                /** @description the keyspace that the table is in */
                keyspace?: string;
                /** @description its port */
                port?: number;
                /** @description who logs in */
                username?: string;
                /** @description the password of that user; it is never shown */
                password?: string;
            } | null;
            /**
             * Secrets
             * @description The `password` of a database server: encrypted, and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * RelationFigures
         * @description A relation of the job: its newest version, and looks at it since the checkpoint began.
         *
         *     Args:
         *         reading_rows: how many rows of the next version were read; null unless one is being read.
         */
        RelationFigures: {
            /** Version */
            version?: number | null;
            /** Reading Rows */
            reading_rows?: number | null;
            /** Refreshes */
            refreshes?: number | null;
            /** Refresh Failures */
            refresh_failures?: number | null;
            /** Problem */
            problem?: string | null;
        };
        /**
         * RelationIn
         * @description A relation to register.
         * @example {
         *       "name": "customers",
         *       "spec": {
         *         "path": "/data/customers",
         *         "schema": {
         *           "id": "int64",
         *           "name": "string"
         *         },
         *         "source": "parquet"
         *       }
         *     }
         */
        RelationIn: {
            /** Name */
            name: string;
            /**
             * RelationSpec
             * @description An entry of `relations:` of a join file: files or a table of a database, without time and delay.
             */
            spec: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "sql" | "cassandra";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /**
                 * Format: span
                 * @description how often it is looked at while the job runs, and read anew if it has changed, such as 10min
                 */
                refresh?: string;
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description postgresql://user:password@host/database, or sqlite:///a/file.db; the password is never shown */
                url?: string;
                /** @description a table or materialized view, as it is written there */
                table?: string;
                /** @description some nodes of the cluster, such as ["127.0.0.1"] */
                hosts?: string[];
                /** @description the keyspace that the table is in */
                keyspace?: string;
                /** @description its port */
                port?: number;
                /** @description who logs in */
                username?: string;
                /** @description the password of that user; it is never shown */
                password?: string;
            };
            /**
             * Secrets
             * @description The `password` of a database server: encrypted, and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * RelationInJob
         * @description What one job has of one relation.
         *
         *     Args:
         *         refreshes, refresh_failures: looks while the job ran that found a new version, and that failed.
         *         problem: why the last look failed; null where it did not.
         *         looked_at: when that was.
         *         reading_version, reading_rows: the version that is being read just now, and how many rows were; null where none
         *             is.
         *         versions: newest first.
         */
        RelationInJob: {
            /** Relation */
            relation: string;
            /** Job Id */
            job_id: string;
            /** Job */
            job: string;
            /** Phase */
            phase: string;
            /** Refresh */
            refresh: string | null;
            /** Refreshes */
            refreshes: number;
            /** Refresh Failures */
            refresh_failures: number;
            /** Problem */
            problem: string | null;
            /** Looked At */
            looked_at: string | null;
            /** Reading Version */
            reading_version: number | null;
            /** Reading Rows */
            reading_rows: number | null;
            /** Versions */
            versions: components["schemas"]["RelationVersion"][];
        };
        /**
         * RelationOut
         * @description A registered relation.
         */
        RelationOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Version */
            version: number;
            /** Spec */
            spec: {
                [key: string]: unknown;
            };
            /** Owner Id */
            owner_id: string | null;
            /** Created At */
            created_at: string | null;
            /** Updated At */
            updated_at: string | null;
            /** Has Secrets */
            has_secrets: boolean;
        };
        /**
         * RelationSampleOut
         * @description A look at a relation; `row_count` is null where only reading it all would tell, and of a database all three.
         */
        RelationSampleOut: {
            /** Columns */
            columns: components["schemas"]["Column"][];
            /** Rows */
            rows: unknown[][];
            /** Rows Seen */
            rows_seen: number;
            /** Bad Records */
            bad_records: {
                [key: string]: number;
            };
            /** Skew */
            skew: {
                [key: string]: unknown;
            };
            /** Row Count */
            row_count: number | null;
            /** Bytes */
            bytes: number | null;
            /** Files */
            files: number | null;
        };
        /**
         * RelationTest
         * @description A relation to look at, which need not be registered.
         * @example {
         *       "spec": {
         *         "path": "/data/customers",
         *         "schema": {
         *           "id": "int64",
         *           "name": "string"
         *         },
         *         "source": "parquet"
         *       }
         *     }
         */
        RelationTest: {
            /**
             * RelationSpec
             * @description An entry of `relations:` of a join file: files or a table of a database, without time and delay.
             */
            spec: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "sql" | "cassandra";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /**
                 * Format: span
                 * @description how often it is looked at while the job runs, and read anew if it has changed, such as 10min
                 */
                refresh?: string;
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description postgresql://user:password@host/database, or sqlite:///a/file.db; the password is never shown */
                url?: string;
                /** @description a table or materialized view, as it is written there */
                table?: string;
                /** @description some nodes of the cluster, such as ["127.0.0.1"] */
                hosts?: string[];
                /** @description the keyspace that the table is in */
                keyspace?: string;
                /** @description its port */
                port?: number;
                /** @description who logs in */
                username?: string;
                /** @description the password of that user; it is never shown */
                password?: string;
            };
            /**
             * Secrets
             * @description The `password` of a database server: encrypted, and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * RelationVersion
         * @description One version of a relation in one job.
         *
         *     Args:
         *         rows, bad: what was read, and records that could not be.
         *         bytes: as it is kept, with the columns that the job's query reads.
         *         used_at: when a batch first joined it, and which; null before.
         *         state: next, in use, kept for batches that may be repeated, or removed.
         */
        RelationVersion: {
            /** Version */
            version: number;
            /** Rows */
            rows: number;
            /** Bad */
            bad: number;
            /** Bytes */
            bytes: number;
            /** Read At */
            read_at: string | null;
            /** Used At */
            used_at: string | null;
            /** Batch */
            batch: number | null;
            /**
             * State
             * @enum {string}
             */
            state: "next" | "in use" | "kept" | "removed";
        };
        /**
         * RelationsInJobs
         * @description Relations as jobs have them.
         */
        RelationsInJobs: {
            /** Data */
            data: components["schemas"]["RelationInJob"][];
        };
        /**
         * Rescale
         * @description How many slots the unit stage is to have; state moves by name, not by copying.
         */
        Rescale: {
            /** Slots */
            slots: number;
        };
        /** @description which results are kept, and when they show */
        ResultsIn: {
            /** @description a condition over the result columns */
            where?: string;
            /** @description the result columns that are kept */
            select?: string[];
            /**
             * Format: span
             * @description a span, such as 30d: snapshots closed longer ago are removed
             */
            retain?: string;
            /** @description when snapshots close */
            snapshot?: {
                /**
                 * Format: span
                 * @description a span of the clock
                 */
                epoch?: string;
                /** @description batches per epoch, in place of a span */
                batches?: number;
                /** @description close by event time, in place of all others */
                punctuation?: boolean;
                /** @description a snapshot closes with this many rows */
                threshold_rows?: number;
                /** @description or with this many bytes */
                threshold_bytes?: number;
                /** @description close at the threshold, before the epoch ends */
                immediate?: boolean;
                /** @description with less than this part of the threshold, wait on */
                delayed?: number;
                /** @description at most this many epochs */
                delays?: number;
            };
            /** @description sqlite, cassandra, hbase or auto; the platform's choice unless set */
            store?: string;
        };
        /**
         * Revision
         * @description An earlier version of a job.
         */
        Revision: {
            /** Version */
            version: number;
            /** Query */
            query: string;
            /** Queries */
            queries?: {
                [key: string]: components["schemas"]["FurtherQuery"];
            };
            /** Operator */
            operator: {
                [key: string]: unknown;
            };
            /** Results */
            results: {
                [key: string]: unknown;
            };
            /** Run */
            run: {
                [key: string]: unknown;
            };
            /** Until */
            until: string | null;
        };
        /**
         * RingModel
         * @description What PSP's formulas say of a ring, by the rates and times that were known.
         *
         *     Args:
         *         best: N*, and `bounds` are N1 and N2, near the lower of which it is.
         *         lengths: by stream, how many nodes it needs by section 5.4.
         *         latency_s: mean time until all results of a row are there, with N* nodes.
         *         bandwidth_bytes_per_s: what a link must carry so that no node waits for rows.
         *         times: what the formulas were given of single steps.
         */
        RingModel: {
            /** Best */
            best: number;
            /** Bounds */
            bounds: [
                number,
                number
            ];
            /** Lengths */
            lengths: {
                [key: string]: number;
            };
            /** Latency S */
            latency_s: number;
            /** Bandwidth Bytes Per S */
            bandwidth_bytes_per_s: number;
            /** Times */
            times: components["schemas"]["StepTime"][];
        };
        /**
         * RowsOut
         * @description Rows that a query would give, 20 at most, with values as results have them; without any, `reason` says why.
         *
         *     Args:
         *         query: its name, where there are several.
         *         large_rows: rows that were found and left out for their size.
         */
        RowsOut: {
            /** Query */
            query: string;
            /** Columns */
            columns: components["schemas"]["Column"][];
            /** Rows */
            rows: unknown[][];
            /** Large Rows */
            large_rows: number;
            /** Reason */
            reason: string | null;
        };
        /**
         * Run
         * @description The generation that runs, or ran last.
         *
         *     Args:
         *         steps: seconds of each step of its start that is done, see `last_start`; empty where nobody told of them.
         */
        Run: {
            /** Generation */
            generation: number;
            /** Host */
            host: string;
            /** Pid */
            pid: number | null;
            /** Since */
            since: string | null;
            /** Alive Until */
            alive_until: string | null;
            /** Ended */
            ended: boolean;
            /** Steps */
            steps: {
                [key: string]: number;
            };
        };
        /** @description how the job runs */
        RunIn: {
            /** @description Spark partitions of the unit stage */
            slots?: number;
            /** @description files of each file stream per batch, at most */
            files_per_batch?: number;
            /**
             * @description Kafka records, or generator rows, of each stream per batch, at most
             * @default 100000
             */
            offsets_per_batch?: number;
            /**
             * Format: span
             * @description while nothing arrives, a batch runs this often; 0s for never
             * @default 1s
             */
            heartbeat?: string;
            /**
             * Format: span
             * @description batches begin this often at most; 0s for at once
             * @default 0s
             */
            every?: string;
            /**
             * @description a row that cannot be joined stops the job
             * @default false
             */
            strict?: boolean;
            /**
             * @description MiB of Java heap, 480 or more
             * @default 1024
             */
            driver_memory?: number;
            /**
             * @description the job ends with its streams
             * @default false
             */
            until_end?: boolean;
        };
        /**
         * SampleOut
         * @description A look at a stream: also columns that may be its event time, and those that a few values made text.
         */
        SampleOut: {
            /** Columns */
            columns: components["schemas"]["Column"][];
            /** Rows */
            rows: unknown[][];
            /** Rows Seen */
            rows_seen: number;
            /** Bad Records */
            bad_records: {
                [key: string]: number;
            };
            /** Skew */
            skew: {
                [key: string]: unknown;
            };
            /** Rate Per S */
            rate_per_s: number | null;
            /** Times */
            times: components["schemas"]["TimeColumn"][];
            /** Widened */
            widened: components["schemas"]["Widened"][];
        };
        /**
         * SavedQueryIn
         * @description A question to keep, as for POST /queries.
         */
        SavedQueryIn: {
            /** Name */
            name: string;
            question: components["schemas"]["QueryIn"];
        };
        /**
         * SavedQueryOut
         * @description A kept question.
         */
        SavedQueryOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Question */
            question: {
                [key: string]: unknown;
            };
            /** Owner Id */
            owner_id: string | null;
            /** Created At */
            created_at: string | null;
        };
        /**
         * SnapshotOut
         * @description A committed snapshot.
         *
         *     Args:
         *         hash: the sum of its rows' hashes, as hexadecimal digits.
         *         time_min, time_max: of its results' times; null without rows, and for what no calendar has.
         *         closed_at: the start of the batch that closed it.
         *         marks: the watermark of each stream with it.
         *         batches: the first and the last batch whose results may be in it.
         *         shed: tuples of all streams that were dropped under overload while it was collected; above 0 its results are
         *             partial.
         *         late: it has results that are older than the watermarks of the snapshot before: tuples came late.
         */
        SnapshotOut: {
            /** Id */
            id: string;
            /** Rows */
            rows: number;
            /** Bytes */
            bytes: number;
            /** Blocks */
            blocks: number;
            /** Hash */
            hash: string;
            /** Time Min */
            time_min: string | null;
            /** Time Max */
            time_max: string | null;
            /** Closed At */
            closed_at: string | null;
            /** Marks */
            marks: (string | null)[];
            /** Batches */
            batches: number[];
            /** Generation */
            generation: number;
            /** Shed */
            shed: number;
            /** Late */
            late: boolean;
        };
        /**
         * StageFigures
         * @description A stage of the plan; stages are numbered from 1, and those whose rows no other one reads give results.
         *
         *     Args:
         *         results: rows that its units found in the span: they went on to the next stage, or are results.
         *         inputs: what it joins.
         *         kind: of its join, such as INNER, LEFT or LEFT ANTI; None where it makes groups, and in older reports.
         *         queries: the names of those that it answers, of a job whose queries have stages of their own.
         *         open_rows: rows that wait, at the end of the span, until it is known whether they are matched.
         *         unmatched_rows: rows that left as unmatched.
         *         late_after_final: pairs that were none, as a row of theirs had left as unmatched before.
         */
        StageFigures: {
            /** Stage */
            stage: number;
            /** Results */
            results: number;
            /** Inputs */
            inputs?: components["schemas"]["StageInput"][];
            /** Kind */
            kind?: string | null;
            /** Queries */
            queries?: string[];
            /**
             * Open Rows
             * @default 0
             */
            open_rows?: number;
            /**
             * Unmatched Rows
             * @default 0
             */
            unmatched_rows?: number;
            /**
             * Late After Final
             * @default 0
             */
            late_after_final?: number;
        };
        /**
         * StageInput
         * @description What a stage reads on one side: a stream or a relation by its name in the query, or what another stage finds.
         *
         *     Where queries have stages of their own, streams go by the names that they are registered by.
         */
        StageInput: {
            /** Stream */
            stream?: string | null;
            /** Stage */
            stage?: number | null;
            /** Relation */
            relation?: string | null;
        };
        /**
         * Start
         * @description What the last start took until its first batch was committed.
         *
         *     Args:
         *         cause: start, restart, change or recovery.
         *         warm: whether the driver had waited for a job.
         *         seconds: in all, since it was asked for, or since the failure.
         *         steps: seconds of each: launch, process, spark, state, first_batch; before that first_look, if the first look at
         *             the streams found nothing to read.
         */
        Start: {
            /** Generation */
            generation: number;
            /** At */
            at: string | null;
            /** Cause */
            cause: string;
            /** Warm */
            warm: boolean;
            /** Seconds */
            seconds: number;
            /** Steps */
            steps: {
                [key: string]: number;
            };
        };
        /**
         * StateTraffic
         * @description What went to the store of the job's state in the span, and came from it.
         *
         *     Args:
         *         served, fetched: openings of segments that the machine's cache had, and had not.
         *         fetched_bytes: of these and of manifests.
         *         retries: how often something was asked again, because the store failed or what it gave was damaged.
         */
        StateTraffic: {
            /**
             * Served
             * @default 0
             */
            served?: number;
            /**
             * Fetched
             * @default 0
             */
            fetched?: number;
            /**
             * Fetched Bytes
             * @default 0
             */
            fetched_bytes?: number;
            /**
             * Put
             * @default 0
             */
            put?: number;
            /**
             * Put Bytes
             * @default 0
             */
            put_bytes?: number;
            /**
             * Retries
             * @default 0
             */
            retries?: number;
        };
        /**
         * StepTime
         * @description What a single step of a ring's nodes takes.
         *
         *     Args:
         *         name: `join`, to compare a pair; `send`, to send and receive a row; `hop`, from a node to the next; `insert` and
         *             `purge`, of one row.
         *         symbol: what the paper calls it, such as T_j.
         *         origin: `set` in the join file, `measured` while the job ran, or `assumed` until enough is.
         */
        StepTime: {
            /** Name */
            name: string;
            /** Symbol */
            symbol: string;
            /** Us */
            us: number;
            /**
             * Origin
             * @enum {string}
             */
            origin: "set" | "measured" | "assumed";
        };
        /**
         * StreamChange
         * @description What is to change; a job takes it over when the job itself is changed with `refresh_streams`.
         */
        StreamChange: {
            /** Spec */
            spec?: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "kafka" | "generator" | "push";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /** @description the column of the event time, or arrival for data without one */
                time: string;
                /**
                 * @description unit of a time column of integers
                 * @default us
                 * @enum {string}
                 */
                time_unit?: "s" | "ms" | "us";
                /**
                 * Format: span
                 * @description disorder inside which results are exact
                 * @default 0s
                 */
                delay?: string;
                /**
                 * Format: span
                 * @description a silence after which the stream holds back the others no longer, such as 30s
                 */
                idle?: string;
                /** @description the columns of a key that a row may end, such as [sym]; with deletes */
                key?: string[];
                /**
                 * @description a row with nothing but its key and its time ends that key, for ASOF JOIN
                 * @default false
                 */
                deletes?: boolean;
                /** @description where snapshots close by punctuation */
                punctuate?: {
                    /**
                     * Format: span
                     * @description a punctuation for each such span of event time
                     */
                    every?: string;
                    /** @description with value: rows that hold it there end a period */
                    column?: string;
                    /** @description what the column holds in those rows */
                    value?: unknown;
                    /**
                     * @description the end of each file ends a period
                     * @constant
                     */
                    per?: "file";
                };
                /** @description drops tuples under overload */
                shed?: {
                    /** @description live tuples per unit at which shedding starts */
                    threshold: number;
                    /** @description live tuples per unit at which all tuples are shed */
                    capacity: number;
                    /**
                     * @description the share that is shed from the threshold on, below 1
                     * @default 0
                     */
                    base?: number;
                    /**
                     * @description how the share grows from there: linear or quadratic
                     * @default linear
                     */
                    shape?: string;
                };
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description bootstrap servers, host:port, with commas between them */
                servers?: string;
                /** @description one topic */
                topic?: string;
                /**
                 * @description how its records are written
                 * @enum {string}
                 */
                format?: "json" | "csv" | "avro" | "arrow";
                /** @description for avro: the writer's schema, as JSON, as a mapping, or the path of a file */
                avro_schema?: string | {
                    [key: string]: unknown;
                };
                /**
                 * @description where the first batch ever begins
                 * @default earliest
                 * @enum {string}
                 */
                starting?: "earliest" | "latest";
                /** @description about how many records come in a second, by which the order of joins is chosen and costs are predicted */
                rows_per_s?: number;
                /** @description settings of the Kafka client, such as {security.protocol: SSL} */
                client?: {
                    [key: string]: string | number | boolean;
                };
                /** @description one of the generators, such as zipf.r */
                kind?: string;
                /**
                 * @description rows per second of event time, and of the clock while the job is live; of nexmark kinds the events of all three streams, of tpch.lineitem orders, so that streams of one rate keep step
                 * @default 10000
                 */
                rate?: number | string;
                /** @description where the stream ends */
                rows?: number;
                /**
                 * @description another seed gives other values
                 * @default 1
                 */
                seed?: number;
                /**
                 * @description now: event times begin when the job does first
                 * @constant
                 */
                begin?: "now";
                /** @description of the kind, such as {keys: 1000, skew: 0.5} for zipf */
                options?: {
                    [key: string]: number;
                };
            } | null;
            /**
             * Secrets
             * @description Kafka client settings that are encrypted and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * StreamIn
         * @description A stream to register.
         * @example {
         *       "name": "bids",
         *       "spec": {
         *         "delay": "2s",
         *         "kind": "nexmark.bid",
         *         "rate": "1000/s",
         *         "source": "generator",
         *         "time": "ts"
         *       }
         *     }
         */
        StreamIn: {
            /** Name */
            name: string;
            /**
             * StreamSpec
             * @description An entry of `streams:` of a join file; `source` may also be `push`, for rows that are posted.
             */
            spec: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "kafka" | "generator" | "push";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /** @description the column of the event time, or arrival for data without one */
                time: string;
                /**
                 * @description unit of a time column of integers
                 * @default us
                 * @enum {string}
                 */
                time_unit?: "s" | "ms" | "us";
                /**
                 * Format: span
                 * @description disorder inside which results are exact
                 * @default 0s
                 */
                delay?: string;
                /**
                 * Format: span
                 * @description a silence after which the stream holds back the others no longer, such as 30s
                 */
                idle?: string;
                /** @description the columns of a key that a row may end, such as [sym]; with deletes */
                key?: string[];
                /**
                 * @description a row with nothing but its key and its time ends that key, for ASOF JOIN
                 * @default false
                 */
                deletes?: boolean;
                /** @description where snapshots close by punctuation */
                punctuate?: {
                    /**
                     * Format: span
                     * @description a punctuation for each such span of event time
                     */
                    every?: string;
                    /** @description with value: rows that hold it there end a period */
                    column?: string;
                    /** @description what the column holds in those rows */
                    value?: unknown;
                    /**
                     * @description the end of each file ends a period
                     * @constant
                     */
                    per?: "file";
                };
                /** @description drops tuples under overload */
                shed?: {
                    /** @description live tuples per unit at which shedding starts */
                    threshold: number;
                    /** @description live tuples per unit at which all tuples are shed */
                    capacity: number;
                    /**
                     * @description the share that is shed from the threshold on, below 1
                     * @default 0
                     */
                    base?: number;
                    /**
                     * @description how the share grows from there: linear or quadratic
                     * @default linear
                     */
                    shape?: string;
                };
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description bootstrap servers, host:port, with commas between them */
                servers?: string;
                /** @description one topic */
                topic?: string;
                /**
                 * @description how its records are written
                 * @enum {string}
                 */
                format?: "json" | "csv" | "avro" | "arrow";
                /** @description for avro: the writer's schema, as JSON, as a mapping, or the path of a file */
                avro_schema?: string | {
                    [key: string]: unknown;
                };
                /**
                 * @description where the first batch ever begins
                 * @default earliest
                 * @enum {string}
                 */
                starting?: "earliest" | "latest";
                /** @description about how many records come in a second, by which the order of joins is chosen and costs are predicted */
                rows_per_s?: number;
                /** @description settings of the Kafka client, such as {security.protocol: SSL} */
                client?: {
                    [key: string]: string | number | boolean;
                };
                /** @description one of the generators, such as zipf.r */
                kind?: string;
                /**
                 * @description rows per second of event time, and of the clock while the job is live; of nexmark kinds the events of all three streams, of tpch.lineitem orders, so that streams of one rate keep step
                 * @default 10000
                 */
                rate?: number | string;
                /** @description where the stream ends */
                rows?: number;
                /**
                 * @description another seed gives other values
                 * @default 1
                 */
                seed?: number;
                /**
                 * @description now: event times begin when the job does first
                 * @constant
                 */
                begin?: "now";
                /** @description of the kind, such as {keys: 1000, skew: 0.5} for zipf */
                options?: {
                    [key: string]: number;
                };
            };
            /**
             * Secrets
             * @description Kafka client settings that are encrypted and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * StreamOut
         * @description A registered stream.
         */
        StreamOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Version */
            version: number;
            /** Spec */
            spec: {
                [key: string]: unknown;
            };
            /** Owner Id */
            owner_id: string | null;
            /** Created At */
            created_at: string | null;
            /** Updated At */
            updated_at: string | null;
            /** Has Secrets */
            has_secrets: boolean;
        };
        /**
         * StreamTest
         * @description A stream to look at, which need not be registered.
         * @example {
         *       "spec": {
         *         "delay": "2s",
         *         "kind": "nexmark.bid",
         *         "rate": "1000/s",
         *         "source": "generator",
         *         "time": "ts"
         *       }
         *     }
         */
        StreamTest: {
            /**
             * StreamSpec
             * @description An entry of `streams:` of a join file; `source` may also be `push`, for rows that are posted.
             */
            spec: {
                /** @description a file, a folder, or a pattern such as data/**\/*.csv */
                path?: string;
                /** @enum {string} */
                source: "parquet" | "csv" | "jsonl" | "arrow" | "kafka" | "generator" | "push";
                /** @description the columns: name -> type */
                schema?: {
                    [key: string]: string;
                };
                /** @description the column of the event time, or arrival for data without one */
                time: string;
                /**
                 * @description unit of a time column of integers
                 * @default us
                 * @enum {string}
                 */
                time_unit?: "s" | "ms" | "us";
                /**
                 * Format: span
                 * @description disorder inside which results are exact
                 * @default 0s
                 */
                delay?: string;
                /**
                 * Format: span
                 * @description a silence after which the stream holds back the others no longer, such as 30s
                 */
                idle?: string;
                /** @description the columns of a key that a row may end, such as [sym]; with deletes */
                key?: string[];
                /**
                 * @description a row with nothing but its key and its time ends that key, for ASOF JOIN
                 * @default false
                 */
                deletes?: boolean;
                /** @description where snapshots close by punctuation */
                punctuate?: {
                    /**
                     * Format: span
                     * @description a punctuation for each such span of event time
                     */
                    every?: string;
                    /** @description with value: rows that hold it there end a period */
                    column?: string;
                    /** @description what the column holds in those rows */
                    value?: unknown;
                    /**
                     * @description the end of each file ends a period
                     * @constant
                     */
                    per?: "file";
                };
                /** @description drops tuples under overload */
                shed?: {
                    /** @description live tuples per unit at which shedding starts */
                    threshold: number;
                    /** @description live tuples per unit at which all tuples are shed */
                    capacity: number;
                    /**
                     * @description the share that is shed from the threshold on, below 1
                     * @default 0
                     */
                    base?: number;
                    /**
                     * @description how the share grows from there: linear or quadratic
                     * @default linear
                     */
                    shape?: string;
                };
                /** @description how the files are written */
                csv?: {
                    /**
                     * @description one ASCII character
                     * @default ,
                     */
                    delimiter?: string;
                    /**
                     * @description whether files begin with a line of column names
                     * @default true
                     */
                    header?: boolean;
                    /** @description the columns' names, in the files' order, in place of those in the files */
                    names?: string[];
                    /**
                     * @description what stands for NULL where it is not in quotes
                     * @default
                     */
                    null?: string;
                    /**
                     * @description one ASCII character, doubled inside a quoted field; empty for none
                     * @default "
                     */
                    quote?: string;
                };
                /** @description bootstrap servers, host:port, with commas between them */
                servers?: string;
                /** @description one topic */
                topic?: string;
                /**
                 * @description how its records are written
                 * @enum {string}
                 */
                format?: "json" | "csv" | "avro" | "arrow";
                /** @description for avro: the writer's schema, as JSON, as a mapping, or the path of a file */
                avro_schema?: string | {
                    [key: string]: unknown;
                };
                /**
                 * @description where the first batch ever begins
                 * @default earliest
                 * @enum {string}
                 */
                starting?: "earliest" | "latest";
                /** @description about how many records come in a second, by which the order of joins is chosen and costs are predicted */
                rows_per_s?: number;
                /** @description settings of the Kafka client, such as {security.protocol: SSL} */
                client?: {
                    [key: string]: string | number | boolean;
                };
                /** @description one of the generators, such as zipf.r */
                kind?: string;
                /**
                 * @description rows per second of event time, and of the clock while the job is live; of nexmark kinds the events of all three streams, of tpch.lineitem orders, so that streams of one rate keep step
                 * @default 10000
                 */
                rate?: number | string;
                /** @description where the stream ends */
                rows?: number;
                /**
                 * @description another seed gives other values
                 * @default 1
                 */
                seed?: number;
                /**
                 * @description now: event times begin when the job does first
                 * @constant
                 */
                begin?: "now";
                /** @description of the kind, such as {keys: 1000, skew: 0.5} for zipf */
                options?: {
                    [key: string]: number;
                };
            };
            /**
             * Secrets
             * @description Kafka client settings that are encrypted and never shown again.
             */
            secrets?: {
                [key: string]: string;
            } | null;
        };
        /**
         * TimeColumn
         * @description A column that may be the event time; `time_unit` is that of whole numbers, which count since 1970.
         */
        TimeColumn: {
            /** Name */
            name: string;
            /** Time Unit */
            time_unit?: string | null;
        };
        /**
         * UnitFigures
         * @description A unit. `stage` is its stage, from 1; counts cover the span; what is stored is as it was when the span ended.
         */
        UnitFigures: {
            /** Unit */
            unit: number;
            /**
             * Label
             * @default
             */
            label?: string;
            /**
             * Stage
             * @default 1
             */
            stage?: number;
            /**
             * Comparisons
             * @default 0
             */
            comparisons?: number;
            /**
             * Search Steps
             * @default 0
             */
            search_steps?: number;
            /**
             * Results
             * @default 0
             */
            results?: number;
            /**
             * Received
             * @default 0
             */
            received?: number;
            /**
             * Received Bytes
             * @default 0
             */
            received_bytes?: number;
            /**
             * Late
             * @default 0
             */
            late?: number;
            /**
             * Expired Rows
             * @default 0
             */
            expired_rows?: number;
            /**
             * Stored Rows
             * @default 0
             */
            stored_rows?: number;
            /**
             * Stored Bytes
             * @default 0
             */
            stored_bytes?: number;
            /**
             * Segments
             * @default 0
             */
            segments?: number;
            /**
             * Open Rows
             * @default 0
             */
            open_rows?: number;
            /**
             * Unmatched Rows
             * @default 0
             */
            unmatched_rows?: number;
            /**
             * Late After Final
             * @default 0
             */
            late_after_final?: number;
        } & {
            [key: string]: unknown;
        };
        /**
         * UploadOut
         * @description An uploaded file: `path` is what a stream's or relation's `spec` says, `format` is guessed from the name.
         */
        UploadOut: {
            /** Name */
            name: string;
            /** Path */
            path: string;
            /** Bytes */
            bytes: number;
            /** Format */
            format: ("csv" | "jsonl" | "parquet" | "arrow") | null;
            /** Owner Id */
            owner_id: string | null;
            /** Uploaded At */
            uploaded_at: string | null;
            /** Read By */
            read_by: string[];
        };
        /**
         * UserChange
         * @description What is to change; a new password ends all logins of the user, and so does disabling.
         */
        UserChange: {
            /** Role */
            role?: ("viewer" | "operator" | "admin") | null;
            /** Disabled */
            disabled?: boolean | null;
            /** Password */
            password?: string | null;
        };
        /**
         * UserIn
         * @description A user to make.
         */
        UserIn: {
            /**
             * Name
             * @description Small letters, digits and . _ @ -, 63 at most; the first is a letter or a digit.
             */
            name: string;
            /**
             * Role
             * @enum {string}
             */
            role: "viewer" | "operator" | "admin";
            /**
             * Password
             * Format: password
             */
            password: string;
        };
        /**
         * UserOut
         * @description A user.
         */
        UserOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Role
             * @enum {string}
             */
            role: "viewer" | "operator" | "admin";
            /** Disabled */
            disabled: boolean;
            /** Created At */
            created_at: string | null;
        };
        /**
         * Widened
         * @description A column that is `type` because of so many `values`, the first of which is `example`; else it were `instead`.
         */
        Widened: {
            /** Column */
            column: string;
            /** Type */
            type: string;
            /** Instead */
            instead: string;
            /** Values */
            values: number;
            /** Example */
            example: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    query_results: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QueryIn"];
            };
        };
        responses: {
            /** @description The answer, as a stream. Streamjoin-Last-Snapshot, Streamjoin-Results and Streamjoin-Limits are among the headers; Streamjoin-Rows and Streamjoin-Cursor too if the whole answer was there when they left. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                    "application/vnd.apache.arrow.stream": string;
                    "application/vnd.apache.parquet": string;
                    /**
                     * @example {
                     *       "job": "job_01kg7w2k5m0000000000000000",
                     *       "job_name": "wins",
                     *       "results": "job_01kg7w2k5m0000000000000000",
                     *       "last_snapshot": "41.0",
                     *       "time": "the latest event time among a result's tuples",
                     *       "key": {
                     *         "name": "id",
                     *         "type": "int64"
                     *       },
                     *       "schema": [
                     *         {
                     *           "name": "id",
                     *           "type": "int64"
                     *         },
                     *         {
                     *           "name": "price",
                     *           "type": "int64"
                     *         }
                     *       ],
                     *       "rows": [
                     *         [
                     *           1,
                     *           250
                     *         ]
                     *       ],
                     *       "rows_given": 1,
                     *       "cursor": null,
                     *       "truncated": false,
                     *       "stopped_by": null,
                     *       "not_finite": 0,
                     *       "limits": {
                     *         "rows": 10000,
                     *         "bytes": 1073741824,
                     *         "seconds": 60
                     *       },
                     *       "blocks_read": 1,
                     *       "blocks_wanted": 1,
                     *       "blocks_stored": 3,
                     *       "rows_read": 12,
                     *       "snapshots": 42
                     *     }
                     */
                    "application/json": components["schemas"]["AnswerOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_results: {
        parameters: {
            query?: {
                from?: string;
                to?: string;
                key?: string;
                key_from?: string;
                key_to?: string;
                where?: string;
                cursor?: string;
                after?: string;
                upto?: string;
                as_of?: string;
                aggregate?: string;
                select?: string;
                by?: string;
                history?: boolean;
                limit?: number;
                format?: "json" | "ndjson" | "csv" | "arrow" | "parquet";
                timeout_s?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer, as a stream. Streamjoin-Last-Snapshot, Streamjoin-Results and Streamjoin-Limits are among the headers; Streamjoin-Rows and Streamjoin-Cursor too if the whole answer was there when they left. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                    "application/vnd.apache.arrow.stream": string;
                    "application/vnd.apache.parquet": string;
                    /**
                     * @example {
                     *       "job": "job_01kg7w2k5m0000000000000000",
                     *       "job_name": "wins",
                     *       "results": "job_01kg7w2k5m0000000000000000",
                     *       "last_snapshot": "41.0",
                     *       "time": "the latest event time among a result's tuples",
                     *       "key": {
                     *         "name": "id",
                     *         "type": "int64"
                     *       },
                     *       "schema": [
                     *         {
                     *           "name": "id",
                     *           "type": "int64"
                     *         },
                     *         {
                     *           "name": "price",
                     *           "type": "int64"
                     *         }
                     *       ],
                     *       "rows": [
                     *         [
                     *           1,
                     *           250
                     *         ]
                     *       ],
                     *       "rows_given": 1,
                     *       "cursor": null,
                     *       "truncated": false,
                     *       "stopped_by": null,
                     *       "not_finite": 0,
                     *       "limits": {
                     *         "rows": 10000,
                     *         "bytes": 1073741824,
                     *         "seconds": 60
                     *       },
                     *       "blocks_read": 1,
                     *       "blocks_wanted": 1,
                     *       "blocks_stored": 3,
                     *       "rows_read": 12,
                     *       "snapshots": 42
                     *     }
                     */
                    "application/json": components["schemas"]["AnswerOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_snapshots: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "41.0",
                     *           "rows": 12,
                     *           "bytes": 480,
                     *           "blocks": 1,
                     *           "hash": "9f2c",
                     *           "time_min": "2026-01-31T12:00:00.000Z",
                     *           "time_max": "2026-01-31T12:00:00.000Z",
                     *           "closed_at": "2026-01-31T12:00:00.000Z",
                     *           "marks": [
                     *             "2026-01-31T12:00:00.000Z",
                     *             "2026-01-31T12:00:00.000Z"
                     *           ],
                     *           "batches": [
                     *             41,
                     *             41
                     *           ],
                     *           "generation": 1,
                     *           "shed": 0,
                     *           "late": false
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_SnapshotOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    validate_job: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Draft"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "diagnostics": [],
                     *       "columns": [
                     *         {
                     *           "name": "id",
                     *           "type": "int64"
                     *         },
                     *         {
                     *           "name": "price",
                     *           "type": "int64"
                     *         }
                     *       ],
                     *       "summary": "auctions joins bids within 10 s"
                     *     }
                     */
                    "application/json": components["schemas"]["Diagnostics"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    explain_job: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Draft"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    preview_job: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Draft"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_jobs: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Only jobs in this phase. */
                phase?: ("stopped" | "starting" | "running" | "stopping" | "restarting" | "recovering" | "failed" | "unknown" | "deleting") | null;
                /** @description Only those of this user: an id, or "me". */
                owner?: string | null;
                /** @description Only those of this time or later: ISO 8601, or us since 1970. */
                since?: (number | string) | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "job_01kg7w2k5m0000000000000000",
                     *           "name": "wins",
                     *           "version": 1,
                     *           "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *           "queries": {},
                     *           "streams": [
                     *             "auctions",
                     *             "bids"
                     *           ],
                     *           "relations": [],
                     *           "operator": {
                     *             "name": "auto"
                     *           },
                     *           "results": {
                     *             "store": "sqlite"
                     *           },
                     *           "run": {
                     *             "slots": 2
                     *           },
                     *           "wanted": "running",
                     *           "wanted_since": "2026-01-31T12:00:00.000Z",
                     *           "observed": "running",
                     *           "observed_since": "2026-01-31T12:00:00.000Z",
                     *           "phase": "running",
                     *           "reason": null,
                     *           "generation": 1,
                     *           "failures": 0,
                     *           "last_run": {
                     *             "generation": 1,
                     *             "host": "worker-1",
                     *             "pid": 4711,
                     *             "since": "2026-01-31T12:00:00.000Z",
                     *             "alive_until": "2026-01-31T12:00:00.000Z",
                     *             "ended": false,
                     *             "steps": {
                     *               "launch": 0.4,
                     *               "process": 0.9,
                     *               "spark": 0.2,
                     *               "state": 0.7,
                     *               "first_batch": 0.9
                     *             }
                     *           },
                     *           "last_start": {
                     *             "generation": 1,
                     *             "at": "2026-01-31T12:00:00.000Z",
                     *             "cause": "start",
                     *             "warm": true,
                     *             "seconds": 3.1,
                     *             "steps": {
                     *               "launch": 0.4,
                     *               "process": 0.9,
                     *               "spark": 0.2,
                     *               "state": 0.7,
                     *               "first_batch": 0.9
                     *             }
                     *           },
                     *           "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *           "created_at": "2026-01-31T12:00:00.000Z",
                     *           "updated_at": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_JobOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    create_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    change_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    diff_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changes": [
                     *         {
                     *           "field": "run.slots",
                     *           "before": 1,
                     *           "after": 2,
                     *           "effect": "keeps_state",
                     *           "reason": null
                     *         }
                     *       ],
                     *       "starts_anew": false,
                     *       "drops": null
                     *     }
                     */
                    "application/json": components["schemas"]["Diff"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    start_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    stop_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    restart_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    rescale_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rescale"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_revisions: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last version of the page before. */
                starting_after?: number | null;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "version": 1,
                     *           "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *           "queries": {},
                     *           "operator": {
                     *             "name": "auto"
                     *           },
                     *           "results": {
                     *             "store": "sqlite"
                     *           },
                     *           "run": {},
                     *           "until": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_Revision_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_job_events: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Only events of this kind, such as job.created. */
                kind?: string | null;
                /** @description Only those of this time or later: ISO 8601, or us since 1970. */
                since?: (number | string) | null;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "evt_01kg7w2k5m0000000000000000",
                     *           "job_id": "job_01kg7w2k5m0000000000000000",
                     *           "at": "2026-01-31T12:00:00.000Z",
                     *           "kind": "job.created",
                     *           "severity": "info",
                     *           "message": "job wins was created",
                     *           "data": {},
                     *           "actor_id": "usr_01kg7w2k5m0000000000000000"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_EventOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_job_metrics: {
        parameters: {
            query?: {
                /** @description How far back. */
                minutes?: number;
                /** @description Which reports come with their units. */
                units?: "all" | "newest";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Metrics"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_job_logs: {
        parameters: {
            query?: {
                which?: "driver" | "spark";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "text/plain": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "text/plain": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_rejected: {
        parameters: {
            query?: {
                /** @description Only rows of this stream. */
                stream?: string | null;
                /** @description Only rows with this reason. */
                reason?: string | null;
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "1-0",
                     *           "stream": "bids",
                     *           "reason": "bad_value",
                     *           "batch": 7,
                     *           "at": "2026-01-31T12:00:00.000Z",
                     *           "source": "a/1.csv",
                     *           "unit": "line",
                     *           "position": 3,
                     *           "detail": "field \"id\": \"x\" is no int64",
                     *           "record": "x,2.5",
                     *           "record_base64": null,
                     *           "truncated": false
                     *         }
                     *       ],
                     *       "has_more": false,
                     *       "counts": [
                     *         {
                     *           "stream": "bids",
                     *           "reason": "bad_value",
                     *           "rows": 12,
                     *           "kept": 12,
                     *           "meaning": "a field has a wrong value"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RejectedPage"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    download_rejected: {
        parameters: {
            query?: {
                /** @description Only rows of this stream. */
                stream?: string | null;
                /** @description Only rows with this reason. */
                reason?: string | null;
                /** @description JSON lines as they were kept, or CSV. */
                format?: "ndjson" | "csv";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rows, as a stream. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_streams: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Only those with this source, such as csv. */
                source?: string | null;
                /** @description Only those of this user: an id, or "me". */
                owner?: string | null;
                /** @description Only those of this time or later: ISO 8601, or us since 1970. */
                since?: (number | string) | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "str_01kg7w2k5m0000000000000000",
                     *           "name": "bids",
                     *           "version": 1,
                     *           "spec": {
                     *             "source": "generator",
                     *             "kind": "nexmark.bid",
                     *             "rate": "1000/s",
                     *             "time": "ts",
                     *             "delay": "2s"
                     *           },
                     *           "has_secrets": false,
                     *           "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *           "created_at": "2026-01-31T12:00:00.000Z",
                     *           "updated_at": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_StreamOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    create_stream: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "str_01kg7w2k5m0000000000000000",
                     *       "name": "bids",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "generator",
                     *         "kind": "nexmark.bid",
                     *         "rate": "1000/s",
                     *         "time": "ts",
                     *         "delay": "2s"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StreamOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    test_stream: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamTest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SampleOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "str_01kg7w2k5m0000000000000000",
                     *       "name": "bids",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "generator",
                     *         "kind": "nexmark.bid",
                     *         "rate": "1000/s",
                     *         "time": "ts",
                     *         "delay": "2s"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StreamOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_stream: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    change_stream: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "str_01kg7w2k5m0000000000000000",
                     *       "name": "bids",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "generator",
                     *         "kind": "nexmark.bid",
                     *         "rate": "1000/s",
                     *         "time": "ts",
                     *         "delay": "2s"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StreamOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    sample_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SampleOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    push_rows: {
        parameters: {
            query?: {
                /** @description The caller's own name of these rows: posting them again under it changes nothing. */
                batch_id?: string | null;
            };
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {"id": 1, "price": 2.5} */
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "rows": 2,
                     *       "duplicate": false
                     *     }
                     */
                    "application/json": components["schemas"]["Pushed"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_relations: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Only those with this source, such as csv. */
                source?: string | null;
                /** @description Only those of this user: an id, or "me". */
                owner?: string | null;
                /** @description Only those of this time or later: ISO 8601, or us since 1970. */
                since?: (number | string) | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "rel_01kg7w2k5m0000000000000000",
                     *           "name": "customers",
                     *           "version": 1,
                     *           "spec": {
                     *             "source": "parquet",
                     *             "path": "/data/customers"
                     *           },
                     *           "has_secrets": false,
                     *           "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *           "created_at": "2026-01-31T12:00:00.000Z",
                     *           "updated_at": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_RelationOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    create_relation: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RelationIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rel_01kg7w2k5m0000000000000000",
                     *       "name": "customers",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "parquet",
                     *         "path": "/data/customers"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["RelationOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    test_relation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RelationTest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelationSampleOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_relation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rel_01kg7w2k5m0000000000000000",
                     *       "name": "customers",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "parquet",
                     *         "path": "/data/customers"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["RelationOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_relation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    change_relation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is to be changed, as its ETag said, or its number in quotes. */
                "if-match"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RelationChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rel_01kg7w2k5m0000000000000000",
                     *       "name": "customers",
                     *       "version": 1,
                     *       "spec": {
                     *         "source": "parquet",
                     *         "path": "/data/customers"
                     *       },
                     *       "has_secrets": false,
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["RelationOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    sample_relation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelationSampleOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_relation_versions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "relation": "customers",
                     *           "job_id": "job_01kg7w2k5m0000000000000000",
                     *           "job": "named bids",
                     *           "phase": "running",
                     *           "refresh": "10min",
                     *           "refreshes": 1,
                     *           "refresh_failures": 0,
                     *           "problem": null,
                     *           "looked_at": "2026-02-01T12:10:00.000Z",
                     *           "reading_version": 3,
                     *           "reading_rows": 400,
                     *           "versions": [
                     *             {
                     *               "version": 2,
                     *               "rows": 1003,
                     *               "bad": 0,
                     *               "bytes": 48128,
                     *               "read_at": "2026-02-01T12:10:00.000Z",
                     *               "used_at": "2026-02-01T12:10:01.500Z",
                     *               "batch": 597,
                     *               "state": "in use"
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RelationsInJobs"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_job_relations: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "relation": "customers",
                     *           "job_id": "job_01kg7w2k5m0000000000000000",
                     *           "job": "named bids",
                     *           "phase": "running",
                     *           "refresh": "10min",
                     *           "refreshes": 1,
                     *           "refresh_failures": 0,
                     *           "problem": null,
                     *           "looked_at": "2026-02-01T12:10:00.000Z",
                     *           "reading_version": 3,
                     *           "reading_rows": 400,
                     *           "versions": [
                     *             {
                     *               "version": 2,
                     *               "rows": 1003,
                     *               "bad": 0,
                     *               "bytes": 48128,
                     *               "read_at": "2026-02-01T12:10:00.000Z",
                     *               "used_at": "2026-02-01T12:10:01.500Z",
                     *               "batch": 597,
                     *               "state": "in use"
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RelationsInJobs"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    refresh_relation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobs": [
                     *         "named bids"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Asked"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    stream_results: {
        parameters: {
            query?: {
                where?: string | null;
                /** @description Columns, separated by commas. */
                select?: string | null;
                /** @description "now", "oldest", or a snapshot id. */
                from?: string;
                backpressure?: string;
                max_rate?: number | null;
            };
            header?: {
                /** @description Resume after this event. */
                "last-event-id"?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events `schema`, `next`, `progress`, `error` and `complete`, as the frames of the websocket; their ids are a snapshot's and its results', to resume with. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_saved_queries: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "qry_01kg7w2k5m0000000000000000",
                     *           "name": "dear bids",
                     *           "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *           "created_at": "2026-01-31T12:00:00.000Z",
                     *           "question": {
                     *             "job": "wins",
                     *             "where": "price > 100"
                     *           }
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_SavedQueryOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    save_query: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SavedQueryIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "qry_01kg7w2k5m0000000000000000",
                     *       "name": "dear bids",
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "question": {
                     *         "job": "wins",
                     *         "where": "price > 100"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SavedQueryOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_saved_query: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "qry_01kg7w2k5m0000000000000000",
                     *       "name": "dear bids",
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "question": {
                     *         "job": "wins",
                     *         "where": "price > 100"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SavedQueryOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_saved_query: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_events: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Only events of this kind, such as job.created. */
                kind?: string | null;
                /** @description Only those of this time or later: ISO 8601, or us since 1970. */
                since?: (number | string) | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "evt_01kg7w2k5m0000000000000000",
                     *           "job_id": "job_01kg7w2k5m0000000000000000",
                     *           "at": "2026-01-31T12:00:00.000Z",
                     *           "kind": "job.created",
                     *           "severity": "info",
                     *           "message": "job wins was created",
                     *           "data": {},
                     *           "actor_id": "usr_01kg7w2k5m0000000000000000"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_EventOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_demos: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DemoOut"][];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    start_demo: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "job_01kg7w2k5m0000000000000000",
                     *       "name": "wins",
                     *       "version": 1,
                     *       "query": "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS",
                     *       "queries": {},
                     *       "streams": [
                     *         "auctions",
                     *         "bids"
                     *       ],
                     *       "relations": [],
                     *       "operator": {
                     *         "name": "auto"
                     *       },
                     *       "results": {
                     *         "store": "sqlite"
                     *       },
                     *       "run": {
                     *         "slots": 2
                     *       },
                     *       "wanted": "running",
                     *       "wanted_since": "2026-01-31T12:00:00.000Z",
                     *       "observed": "running",
                     *       "observed_since": "2026-01-31T12:00:00.000Z",
                     *       "phase": "running",
                     *       "reason": null,
                     *       "generation": 1,
                     *       "failures": 0,
                     *       "last_run": {
                     *         "generation": 1,
                     *         "host": "worker-1",
                     *         "pid": 4711,
                     *         "since": "2026-01-31T12:00:00.000Z",
                     *         "alive_until": "2026-01-31T12:00:00.000Z",
                     *         "ended": false,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "last_start": {
                     *         "generation": 1,
                     *         "at": "2026-01-31T12:00:00.000Z",
                     *         "cause": "start",
                     *         "warm": true,
                     *         "seconds": 3.1,
                     *         "steps": {
                     *           "launch": 0.4,
                     *           "process": 0.9,
                     *           "spark": 0.2,
                     *           "state": 0.7,
                     *           "first_batch": 0.9
                     *         }
                     *       },
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "updated_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["JobOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    remove_demo: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    livez: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: string;
                    };
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_problem: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                code: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "not_found",
                     *       "status": 404,
                     *       "title": "This was not found",
                     *       "can_retry": false
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_operators: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "name": "biclique",
                     *         "system": "BiStream",
                     *         "settings": {
                     *           "type": "object",
                     *           "properties": {}
                     *         },
                     *         "runs_jobs": true
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["OperatorOut"][];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_generators: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "kind": "nexmark.bid",
                     *         "columns": [
                     *           {
                     *             "name": "id",
                     *             "type": "int64"
                     *           },
                     *           {
                     *             "name": "price",
                     *             "type": "int64"
                     *           }
                     *         ]
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["GeneratorOut"][];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_config: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    log_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LogIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "usr_01kg7w2k5m0000000000000000",
                     *       "name": "kim",
                     *       "role": "operator",
                     *       "key_id": null
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    log_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "usr_01kg7w2k5m0000000000000000",
                     *       "name": "kim",
                     *       "role": "operator",
                     *       "key_id": null
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    change_own_password: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_users: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "usr_01kg7w2k5m0000000000000000",
                     *           "name": "kim",
                     *           "role": "operator",
                     *           "disabled": false,
                     *           "created_at": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_UserOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    create_user: {
        parameters: {
            query?: never;
            header?: {
                /** @description A name of this request of the caller's own. Sent again under it within 24 hours, the same request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply was too long to keep, 422 for another request. What was refused or failed is tried again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The reply is that of an earlier request with the same Idempotency-Key. */
                    "Idempotency-Replayed"?: "true";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "usr_01kg7w2k5m0000000000000000",
                     *       "name": "kim",
                     *       "role": "operator",
                     *       "disabled": false,
                     *       "created_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["UserOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "usr_01kg7w2k5m0000000000000000",
                     *       "name": "kim",
                     *       "role": "operator",
                     *       "disabled": false,
                     *       "created_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["UserOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    change_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "usr_01kg7w2k5m0000000000000000",
                     *       "name": "kim",
                     *       "role": "operator",
                     *       "disabled": false,
                     *       "created_at": "2026-01-31T12:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["UserOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_api_keys: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last id of the page before; none for the first page. */
                starting_after?: string | null;
                /** @description Those of all users; for admins. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "key_01kg7w2k5m0000000000000000",
                     *           "name": "nightly export",
                     *           "start": "sj_Zk3v9Qa",
                     *           "role": "viewer",
                     *           "user_id": "usr_01kg7w2k5m0000000000000000",
                     *           "created_at": "2026-01-31T12:00:00.000Z",
                     *           "used_at": null,
                     *           "revoked_at": null,
                     *           "expires_at": "2027-01-31T12:00:00.000Z",
                     *           "made_by_key": null,
                     *           "ends_with_login": true
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_KeyOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    create_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KeyIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "key_01kg7w2k5m0000000000000000",
                     *       "name": "nightly export",
                     *       "start": "sj_Zk3v9Qa",
                     *       "role": "viewer",
                     *       "user_id": "usr_01kg7w2k5m0000000000000000",
                     *       "created_at": "2026-01-31T12:00:00.000Z",
                     *       "used_at": null,
                     *       "revoked_at": null,
                     *       "expires_at": "2027-01-31T12:00:00.000Z",
                     *       "made_by_key": null,
                     *       "ends_with_login": true,
                     *       "key": "sj_..., which is shown this once"
                     *     }
                     */
                    "application/json": components["schemas"]["KeyCreated"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    revoke_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    get_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": unknown;
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_uploads: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last name of the page before. */
                starting_after?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "name": "orders.csv",
                     *           "path": "upload:orders.csv",
                     *           "bytes": 1024,
                     *           "format": "csv",
                     *           "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *           "uploaded_at": "2026-01-31T12:00:00.000Z",
                     *           "read_by": [
                     *             "stream orders"
                     *           ]
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_UploadOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    add_upload: {
        parameters: {
            query: {
                /** @description The file's name, without folders. */
                name: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "orders.csv",
                     *       "path": "upload:orders.csv",
                     *       "bytes": 1024,
                     *       "format": "csv",
                     *       "owner_id": "usr_01kg7w2k5m0000000000000000",
                     *       "uploaded_at": "2026-01-31T12:00:00.000Z",
                     *       "read_by": [
                     *         "stream orders"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["UploadOut"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    delete_upload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_files: {
        parameters: {
            query?: {
                /** @description Of a folder; without one the allowed folders are listed. */
                path?: string | null;
                /** @description How many at most. */
                limit?: number;
                /** @description The last name of the page before. */
                starting_after?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/data",
                     *       "parent": null,
                     *       "has_more": false,
                     *       "is_cut": false,
                     *       "data": [
                     *         {
                     *           "name": "orders.csv",
                     *           "path": "/data/orders.csv",
                     *           "kind": "file",
                     *           "format": "csv",
                     *           "bytes": 1024
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Files"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
    list_machines: {
        parameters: {
            query?: {
                /** @description How many at most. */
                limit?: number;
                /** @description The last name before this page. */
                starting_after?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "name": "joins-1",
                     *           "takes_jobs": true,
                     *           "jobs": 3,
                     *           "free_bytes": 6442450944,
                     *           "folder": "0b5c1f6f2e3d4c5b9a8f7e6d5c4b3a29",
                     *           "seen_at": "2026-01-31T12:00:00.000Z"
                     *         }
                     *       ],
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["Page_MachineOut_"];
                };
            };
            /** @description What is wrong, and the way out. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
            /** @description What failed. */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "type": "/api/v1/problems/not_found",
                     *       "title": "This was not found",
                     *       "status": 404,
                     *       "detail": "there is no job \"wins\"",
                     *       "instance": "/api/v1/jobs/wins",
                     *       "code": "not_found",
                     *       "subcode": "unknown_name",
                     *       "params": {
                     *         "what": "job",
                     *         "name": "wins"
                     *       },
                     *       "can_retry": false,
                     *       "request_id": "req_01kg7w2k5m0000000000000000",
                     *       "errors": []
                     *     }
                     */
                    "application/json": components["schemas"]["ProblemDocument"];
                };
            };
        };
    };
}
