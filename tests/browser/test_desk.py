"""The administrators' desk in a real browser: its scripts run, and nothing on its pages complains."""

import pytest

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.server]

LISTS = ("person", "serviceaccount", "connection", "foldergrant", "auditevent")


def test_every_list_and_the_organization_run_without_an_error(window: Open) -> None:
    root = window("root")
    for name in (*LISTS, "organization"):
        root.open(f"/admin/access/{name}/")

    assert root.complaints == []
