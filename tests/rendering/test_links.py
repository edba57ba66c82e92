"""Where a link in an entry leads: told by its letters, whatever stands there."""

import pytest

from kb.links import address_of_entry, address_of_folder, resolve

HERE = "Engineering/Payments"


@pytest.mark.parametrize(
    ("written", "leads_to"),
    [
        ("deployment.md", "/files/Engineering/Payments/deployment.md"),
        ("./deployment.md", "/files/Engineering/Payments/deployment.md"),
        ("Checkout/", "/files/Engineering/Payments/Checkout/"),
        ("Checkout", "/files/Engineering/Payments/Checkout"),
        ("../Billing/invoices.md", "/files/Engineering/Billing/invoices.md"),
        ("..", "/files/Engineering/"),
        (".", "/files/Engineering/Payments/"),
        ("../..", "/files/"),
        ("../../../../Handbook/a.md", "/files/Handbook/a.md"),
        ("/Handbook/a.md", "/files/Handbook/a.md"),
        ("/", "/files/"),
        ("/files/Handbook/a.md", "/files/Handbook/a.md"),
        ("/files/", "/files/"),
        ("/logout/", "/files/logout/"),
        ("design%20doc.md", "/files/Engineering/Payments/design%20doc.md"),
        ("design doc.md", "/files/Engineering/Payments/design%20doc.md"),
        ("%2e%2e/%2E%2E/a.md", "/files/a.md"),
        ("..\\Billing\\invoices.md", "/files/Engineering/Billing/invoices.md"),
        ("deployment.md#roll-back", "/files/Engineering/Payments/deployment.md#md-roll-back"),
        ("deployment.md#md-roll-back", "/files/Engineering/Payments/deployment.md#md-roll-back"),
        ("deployment.md?raw=1#a", "/files/Engineering/Payments/deployment.md#md-a"),
        ("#roll-back", "#md-roll-back"),
        ('a".md', "/files/Engineering/Payments/a%22.md"),
        ("https://a.example/b?c#d", "https://a.example/b?c#d"),
        ("HTTP://a.example", "HTTP://a.example"),
        ("mailto:ada@a.example", "mailto:ada@a.example"),
        ("//a.example/b#c", "https://a.example/b#c"),
        ("\\\\a.example\\b", "https://a.example/b"),
        (" \tdeploy\nment.md ", "/files/Engineering/Payments/deployment.md"),
    ],
)
def test_a_link_leads_into_the_tree_or_out_to_the_web(written: str, leads_to: str) -> None:
    assert resolve(written, HERE) == leads_to


@pytest.mark.parametrize(
    "written",
    [
        "javascript:x",
        "java\nscript:x",
        "\x01javascript:x",
        "data:text/html,x",
        "file:///x",
        "x-app:y",
        "#",
        "",
        "?a",
    ],
)
def test_other_links_lead_nowhere(written: str) -> None:
    assert resolve(written, HERE) is None


def test_a_link_in_the_root_folder_starts_there() -> None:
    assert resolve("a.md", "") == "/files/a.md"
    assert resolve("../a.md", "") == "/files/a.md"


def test_addresses_carry_blanks_in_names() -> None:
    assert address_of_entry("My notes/to do.md") == "/files/My%20notes/to%20do.md"
    assert address_of_folder("My notes") == "/files/My%20notes/"
    assert address_of_folder("") == "/files/"
