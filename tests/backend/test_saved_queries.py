"""Kept questions come back as they were asked."""

from __future__ import annotations

from fastapi.testclient import TestClient

URL = "/api/v1/saved-queries"
QUESTION = {"job": "wins", "from": 5, "key": "9007199254740993", "where": "price > 100", "limit": 3, "format": "csv"}


def test_a_kept_question_comes_back_by_id_and_by_name(api: TestClient) -> None:
    made = api.post(URL, json={"name": "dear bids", "question": QUESTION})
    assert made.status_code == 201
    assert made.json()["question"] == QUESTION
    for key in (made.json()["id"], "dear bids"):
        assert api.get(f"{URL}/{key}").json() == made.json()
    assert api.get(URL).json()["data"] == [made.json()]


def test_a_name_is_taken_once_and_free_again_after_deletion(api: TestClient) -> None:
    body = {"name": "dear bids", "question": QUESTION}
    api.post(URL, json=body)
    assert api.post(URL, json=body).status_code == 409
    assert api.delete(f"{URL}/dear bids").status_code == 204
    assert api.delete(f"{URL}/dear bids").status_code == 404
    assert api.post(URL, json=body).status_code == 201


def test_what_is_no_question_is_not_kept(api: TestClient) -> None:
    wrong = api.post(URL, json={"name": "x", "question": {"job": "wins", "lmit": 3}})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/question/lmit")
