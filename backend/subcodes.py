"""What a problem's `subcode` may be: finer than its code, and as stable. Where nothing is finer it is the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Recorded(Enum):
    """When a refusal is written down for who looks after the platform."""

    NEVER = "a mistake, or what comes by itself"
    WITH_KEY = "a login may just have expired, which is nobody's attack; an API key does so only where somebody guesses"
    ALWAYS = "what somebody tries who may not, or who takes more than there is for one"


WITH_KEY, ALWAYS = Recorded.WITH_KEY, Recorded.ALWAYS


@dataclass(frozen=True, slots=True)
class Subcode:
    """What a subcode means, in words that repeat nothing of what was sent.

    Args:
        meaning: names in backquotes are in a problem's `params`.
        recorded: whether `GET /events` has a line of it.
    """

    meaning: str
    recorded: Recorded = Recorded.NEVER


SUBCODES: Final[Mapping[str, Subcode]] = {
    "all_sockets_taken": Subcode("the platform has as many websockets and event streams open as it may", ALWAYS),
    "auth_is_off": Subcode("nobody logs in here, so nobody has a password or a key"),
    "bad_idempotency_key": Subcode("an Idempotency-Key is 1 to 200 printable characters without blanks"),
    "bad_name": Subcode("a name has other characters than it may"),
    "bad_page": Subcode("starting_after is not an id of this list"),
    "bad_place": Subcode("no path or address, or nothing is there", ALWAYS),
    "bad_reason": Subcode("rows are not rejected for such a reason"),
    "bad_secret": Subcode("a secret is empty, or has characters that cannot be printed"),
    "being_deleted": Subcode("the job is on its way out"),
    "body_ended": Subcode("the connection ended before the body did"),
    "body_too_large": Subcode("the body has more than `limit` bytes", ALWAYS),
    "catalog_away": Subcode("the catalog does not answer"),
    "condition_too_large": Subcode("a condition that follows results is evaluated in more than `limit` parts", ALWAYS),
    "demo_removed": Subcode("somebody removed the demo while it started"),
    "disk_full": Subcode("the disk of the data folder is full"),
    "empty_upload": Subcode("the file has no bytes"),
    "expired": Subcode("retention removed what was asked for"),
    "failed_just_now": Subcode("the same request failed a moment ago"),
    "file_damaged": Subcode("a file of a stream or relation cannot be read"),
    "foreign_page": Subcode("a page of another origin sent the request", ALWAYS),
    "form_not_file": Subcode("the body is a form with a file in it, not the file"),
    "in_progress": Subcode("the same request is being worked on"),
    "in_use": Subcode("others use it; `users` are the first of them"),
    "inputs_differ": Subcode("what the job would read is changed again and again meanwhile"),
    "jobs_share_used_up": Subcode("the running jobs of one user have all of the `limit` that they may", ALWAYS),
    "json_only": Subcode("a websocket carries JSON only"),
    "key_role_too_high": Subcode("a key has at most the role of who makes it", ALWAYS),
    "key_role_too_low": Subcode("a key does not revoke one with a higher role", ALWAYS),
    "key_too_long": Subcode("a key holds for `limit` days at most"),
    "keys_of_others": Subcode("only admins see the keys of others", ALWAYS),
    "last_admin": Subcode("somebody has to be left who may do everything"),
    "link_in_data": Subcode("a link lies where the platform keeps rows", ALWAYS),
    "loopback_only": Subcode("auth is off, so the API answers to names of this machine only", ALWAYS),
    "name_taken": Subcode("another one has the name"),
    "nested_too_deeply": Subcode("a condition has too many brackets in each other"),
    "no_demo": Subcode("there is no such demo"),
    "no_key": Subcode("you have no such key"),
    "no_login": Subcode("no key and no login that opens something", WITH_KEY),
    "no_problem": Subcode("there is no such problem"),
    "no_query": Subcode("the job has no such query beside its own"),
    "no_rows": Subcode("the body has no rows"),
    "no_secret_key": Subcode("STREAMJOIN_SECRET_KEY is missing or too short, so secrets cannot be kept"),
    "no_secrets_here": Subcode("nothing here is opened with such secrets"),
    "no_upload": Subcode("there is no such upload"),
    "not_a_push_stream": Subcode("rows are pushed into streams of source push"),
    "not_allowed": Subcode("a path, a host or a client setting that the platform's owner did not allow", ALWAYS),
    "not_committed": Subcode("the snapshot has not been committed"),
    "not_owner": Subcode("it belongs to somebody else", ALWAYS),
    "not_plain": Subcode("the body is packed, or text in another encoding than UTF-8", ALWAYS),
    "nul_in_address": Subcode("the address has a NUL character", ALWAYS),
    "origin_missing": Subcode("a request with a session cookie must say which page it is from", ALWAYS),
    "other_request": Subcode("the Idempotency-Key belongs to another request"),
    "other_results": Subcode("the snapshot is of another job, or from before this one began anew"),
    "over_limit": Subcode("a job asks for more than `limit`", ALWAYS),
    "own_password": Subcode("one's own password is changed with the old one", ALWAYS),
    "password_changed": Subcode("the password was changed meanwhile"),
    "reply_not_kept": Subcode("the request was done before, with `status`; read `location`"),
    "results_damaged": Subcode("a file of the results is damaged"),
    "role_too_low": Subcode("the role `needed` is needed, and the actor has `has`", ALWAYS),
    "rows_damaged": Subcode("the rows that were put aside cannot be read"),
    "rows_differ": Subcode("other rows were posted under the name"),
    "secret_in_spec": Subcode("a password or key stands in `spec.client`, which everybody sees", ALWAYS),
    "secrets_of_other_servers": Subcode("secrets were given for other servers", ALWAYS),
    "secrets_too_large": Subcode("secrets have more bytes than they may"),
    "space_share_used_up": Subcode("what one user sent takes all of the `limit` bytes that it may", ALWAYS),
    "space_used_up": Subcode("what people sent takes all of the `limit` bytes that it may", ALWAYS),
    "spec_too_large": Subcode("a spec has more than `limit` bytes", ALWAYS),
    "starts_anew": Subcode("the change needs `start_anew`"),
    "store_away": Subcode("the store of the results does not answer"),
    "texts_too_large": Subcode("all texts of a job together have more than `limit` bytes", ALWAYS),
    "too_many_answers": Subcode("as many answers are being read as may be", ALWAYS),
    "too_many_answers_of_yours": Subcode("the actor is being given as many answers as one may be", ALWAYS),
    "too_many_at_once": Subcode("`limit` requests of the actor are being worked on", ALWAYS),
    "too_many_jobs": Subcode("there are as many jobs as may be, `of` one user or of all: `limit`", ALWAYS),
    "too_many_keys": Subcode("the user has as many keys as may be, or as many with those that ended", ALWAYS),
    "too_many_logins": Subcode("too many attempts to log in", ALWAYS),
    "too_much_held": Subcode("the groups of open answers hold as much memory as they may", ALWAYS),
    "too_many_looks": Subcode("the actor looks at as many files and databases as may be; `limit` at once", ALWAYS),
    "too_many_passwords": Subcode("as many passwords are being checked as may be"),
    "too_many_previews": Subcode("as many previews are being made as may be", ALWAYS),
    "too_many_relations": Subcode("there are as many relations as may be, `of` one user or of all: `limit`", ALWAYS),
    "too_many_requests": Subcode("more requests than the limit allows", ALWAYS),
    "too_many_saved_queries": Subcode(
        "there are as many saved queries as may be, `of` one user or of all: `limit`", ALWAYS
    ),
    "too_many_sockets": Subcode("the actor has as many websockets and event streams open as may be", ALWAYS),
    "too_many_streams": Subcode("there are as many streams as may be, `of` one user or of all: `limit`", ALWAYS),
    "too_many_subscriptions": Subcode("the websocket has as many subscriptions as may be", ALWAYS),
    "too_many_uploads": Subcode("there are as many uploads as may be, `of` one user or of all: `limit`", ALWAYS),
    "too_many_views": Subcode(
        "the job is followed by as many different questions, or conditions of as many parts, as may be", ALWAYS
    ),
    "too_slow": Subcode("the aggregate was not ready in time"),
    "unknown_name": Subcode("there is nothing of that name or id; `what` and `name` say which"),
    "unknown_parameter": Subcode("the request has a parameter `name` that is none"),
    "unknown_stream": Subcode("a query names a stream that is not registered"),
    "upload_differs": Subcode("the upload has other content already"),
    "upload_too_large": Subcode("the file has more than `limit` bytes", ALWAYS),
    "user_removed": Subcode("the user was removed meanwhile"),
    "value_unfit": Subcode("the body has a number or a text that JSON, or the catalog, has no room for", ALWAYS),
    "version_differs": Subcode("it was changed since; it is at `version` now"),
    "version_missing": Subcode("If-Match must say which version is meant; it is at `version` now"),
    "weak_password": Subcode("too short, too long, or the user's own name"),
    "wrong_login": Subcode("the name or the password is wrong, or the user is disabled"),
    "wrong_password": Subcode("the old password is wrong", ALWAYS),
}
"""Every subcode there is."""
