import io
import json
import logging
import logging.config
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from core import log

TOKEN = "brn_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What the root handler writes while the test runs."""
    formatter = log.configuration()["formatters"]["json"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    factory = formatter.pop("()")
    handler.setFormatter(factory(**formatter))
    logger = logging.getLogger("tests.log")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield stream
    logger.removeHandler(handler)
    logger.propagate = True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json_with_its_facts(stream: io.StringIO) -> None:
    log.get_logger("tests.log").info("import done", files=3, folder="fld_x")

    (line,) = lines(stream)
    assert line["event"] == "import done"
    assert (line["files"], line["folder"], line["level"], line["logger"]) == (3, "fld_x", "info", "tests.log")
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    "text",
    [
        f"refused {TOKEN} twice",
        f"Authorization: Bearer {TOKEN}",
        "{'Authorization': 'Basic YWRtaW46aHVudGVyMg=='}",
        "bearer hunter2hunter2",
        "password=hunter2hunter2 next",
        '{"password": "hunter2 hunter2", "x": 1}',
        "BRAIN_BACKUP_PAT=hunter2hunter2",
        "BRAIN_CHAT_API_KEY: hunter2hunter2",
        "cloning https://ada:hunter2@git.example/x.git",
        "cloning https://hunter2@git.example/x.git",
        "Cookie: brain_session=hunter2hunter2; brain_csrf=hunter2",
    ],
)
def test_a_secret_in_a_text_is_taken_out(stream: io.StringIO, text: str) -> None:
    log.get_logger("tests.log").warning(text, said=text, listed=[text, {"deep": (text,)}])
    logging.getLogger("tests.log").warning("a library says %s", text)

    assert "hunter2" not in stream.getvalue()
    assert TOKEN[:12] not in stream.getvalue()
    assert "YWRtaW4" not in stream.getvalue()
    assert log.REDACTED in stream.getvalue()


@pytest.mark.parametrize(
    "key",
    ["password", "new_password", "token", "access_token", "Authorization", "cookie", "set-cookie", "pat", "api_key",
     "csrftoken", "csrf", "client_secret", "credentials"],
)  # fmt: skip
def test_the_value_of_a_key_that_names_a_secret_is_taken_out(stream: io.StringIO, key: str) -> None:
    log.get_logger("tests.log").info("signed in", **{key: "hunter2"}, deep={key: ["hunter2"]})

    assert "hunter2" not in stream.getvalue()


def test_what_only_looks_a_little_like_a_secret_stays(stream: io.StringIO) -> None:
    log.get_logger("tests.log").info(
        "ok", token_id="con_x", tokens_seen=4, path="a/b", note="the token expired"
    )

    (line,) = lines(stream)
    assert (line["token_id"], line["tokens_seen"], line["path"], line["note"]) == (
        "con_x",
        4,
        "a/b",
        "the token expired",
    )


def test_an_exception_is_logged_by_type_and_place_without_its_message(stream: io.StringIO) -> None:
    def break_on(content: str) -> None:
        raise ValueError(f"cannot read {content}")

    try:
        try:
            break_on("the plan of the merger")
        except ValueError as error:
            raise OSError(28, "No space left", "Merger/plan.md") from error
    except OSError:
        log.get_logger("tests.log").error("unexpected exception", exc_info=True)

    assert "merger" not in stream.getvalue().lower()
    (line,) = lines(stream)
    outer, inner = line["exception"]
    assert (outer["type"], outer["errno"]) == ("builtins.OSError", 28)
    assert inner["type"] == "builtins.ValueError"
    assert inner["frames"][-1].endswith(" break_on")
    assert "tests/core/test_log.py:" in inner["frames"][-1]


def test_a_database_error_keeps_the_name_that_an_operator_needs(stream: io.StringIO) -> None:
    try:
        sqlite3.connect("file:/nowhere/at/all?mode=ro", uri=True)
    except sqlite3.Error:
        logging.getLogger("tests.log").exception("not ready")

    (line,) = lines(stream)
    assert line["exception"][0]["sqlite"] == "SQLITE_CANTOPEN"


def test_every_record_of_the_process_goes_through_the_one_handler() -> None:
    settings = log.configuration()

    assert settings["root"]["handlers"] == list(settings["handlers"]) == ["stderr"]
    assert all(not logger.get("handlers") for logger in settings["loggers"].values())
