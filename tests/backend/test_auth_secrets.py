"""Connection secrets, as the catalog keeps them."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from backend.auth.secrets import BYTES_MAX, WrongKeyError, open_sealed, seal
from backend.problems import Problem
from backend.settings import Settings

SECRETS = {"sasl.username": "kim", "sasl.password": "canary ü 1", "number": 1}


def settings_of(key: str | None) -> Settings:
    return Settings(secret_key=None if key is None else SecretStr(key))


SETTINGS = settings_of("a key of this test, long enough")


def test_what_was_sealed_opens_and_shows_nothing_before() -> None:
    sealed = seal(SETTINGS, SECRETS)
    assert open_sealed(SETTINGS, sealed) == SECRETS
    assert b"canary" not in sealed and b"sasl" not in sealed
    assert seal(SETTINGS, SECRETS) != sealed  # not even that two are the same
    assert open_sealed(SETTINGS, seal(SETTINGS, {})) == {}


def test_the_same_key_elsewhere_opens_it() -> None:
    assert open_sealed(settings_of("a key of this test, long enough"), seal(SETTINGS, SECRETS)) == SECRETS


def test_another_key_is_told_by_name() -> None:
    with pytest.raises(WrongKeyError, match="STREAMJOIN_SECRET_KEY") as wrong:
        open_sealed(settings_of("another key, of some length"), seal(SETTINGS, SECRETS))
    assert wrong.value.code == "conflict"


@pytest.mark.parametrize("place", [0, 4, 11, 12, 23, 24, -1])
def test_a_bit_that_flipped_is_noticed(place: int) -> None:
    sealed = bytearray(seal(SETTINGS, SECRETS))
    sealed[place] ^= 1
    with pytest.raises(WrongKeyError):
        open_sealed(SETTINGS, bytes(sealed))


def test_what_was_cut_off_is_noticed() -> None:
    sealed = seal(SETTINGS, SECRETS)
    for length in (0, 1, 4, 11, 12, 20, 24, 39, len(sealed) - 1):
        with pytest.raises(WrongKeyError, match="damaged"):
            open_sealed(SETTINGS, sealed[:length])


@pytest.mark.parametrize("key", [None, "", "fifteen letters"])
def test_without_a_key_no_secret_is_kept(key: str | None) -> None:
    for act in (lambda: seal(settings_of(key), SECRETS), lambda: open_sealed(settings_of(key), b"x")):
        with pytest.raises(Problem, match="STREAMJOIN_SECRET_KEY") as wrong:
            act()
        assert wrong.value.code == "invalid"


def test_secrets_have_a_limit() -> None:
    with pytest.raises(Problem, match="limit"):
        seal(SETTINGS, {"certificate": "x" * BYTES_MAX})
