"""Reads HTML as a browser would and lists what must not stand in a page. Knows nothing of the cleaner's own lists."""

import re
from html.parser import HTMLParser

HARMLESS = set(
    re.findall(
        r"\w+",
        """
    a abbr b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure
    h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q rp rt ruby s samp section small span strong sub summary sup
    table tbody td tfoot th thead time tr u ul var wbr
""",
    )
)
HARMLESS_ATTRIBUTES = set(
    re.findall(
        r"[\w-]+",
        """
    aria-label class colspan datetime dir href id lang open rel reversed role rowspan span start tabindex title value
""",
    )
)
OUR_ADDRESSES = re.compile(r"(https?://|mailto:|/files/|#md-)")


class _Judge(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in HARMLESS:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name not in HARMLESS_ATTRIBUTES:
                self.faults.append(f"<{tag} {name}>")
            if name == "href" and not OUR_ADDRESSES.match(value or ""):
                self.faults.append(f"<{tag} href={value!r}>")
            if name == "id" and not (value or "").startswith("md-"):
                self.faults.append(f"<{tag} id={value!r}>")
        if tag == "a" and dict(attrs).get("rel") != "noopener noreferrer nofollow":
            self.faults.append("<a> without rel")

    def handle_comment(self, data: str) -> None:
        self.faults.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.faults.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.faults.append("instruction")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def faults_of(html: str) -> list[str]:
    """What a page must not hold: empty for HTML that may stand there."""
    judge = _Judge()
    judge.feed(html)
    judge.close()
    return judge.faults


def text_of(html: str) -> str:
    """What a reader sees of it, blanks folded."""
    judge = _Judge()
    judge.feed(html)
    judge.close()
    return " ".join("".join(judge.text).split())
