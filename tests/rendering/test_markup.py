"""What a reader gets to see of an entry's Markdown."""

import re
from html.parser import HTMLParser

from kb.markup import Heading, to_markup
from tests.rendering.judge import text_of


def _body(content: str) -> str:
    return to_markup(content, "Folder").body


def test_the_outline_has_the_headings_outside_quotes_and_lists() -> None:
    markup = to_markup(
        "# One\n\n## *Two* and `three`\n\n> ## quoted\n\n- # listed\n\n<div>\n# raw\n</div>\n\nFour\n----\n",
        "",
    )

    assert markup.headings == [
        Heading(1, "One", "md-one", 1),
        Heading(2, "Two and three", "md-two-and-three", 3),
        Heading(2, "Four", "md-four", 13),
    ]


def test_the_highest_rank_of_a_text_is_the_one_below_the_title_of_the_page() -> None:
    for written, shown in [
        ("a\n\n# One\n\n## Two\n", ["h2", "h3"]),
        ("# Title\n\n## One\n\n### Two\n\n###### Six\n", ["h2", "h2", "h3", "h6"]),
        ("# Title\n\n# One\n\n###### Six\n", ["h2", "h2", "h6"]),
        ("### One\n\n#### Two\n", ["h2", "h3"]),
        ("> # Quoted\n\n### One\n", ["h2", "h2"]),
        ("<h1>Raw</h1>\n", ["h2"]),
    ]:
        markup = to_markup(written, "")
        assert re.findall(r"<(h\d)", markup.opening + markup.body) == shown, written


def test_equal_headings_get_different_anchors() -> None:
    markup = to_markup("# A\n\n# A-1\n\n# A\n\n# A\n\n# 你好!\n\n# !!!\n", "")

    anchors = [heading.anchor for heading in markup.headings]
    assert anchors == ["md-a", "md-a-1", "md-a-2", "md-a-3", "md-你好", "md-section"]


def test_a_heading_may_name_its_anchor() -> None:
    markup = to_markup("# Deploy { #deploy-it }\n\n# { #only }\n", "")

    assert [(heading.text, heading.anchor) for heading in markup.headings] == [
        ("Deploy", "md-deploy-it"),
        ("{ #only }", "md-only"),
    ]
    assert "{" not in markup.opening


def test_the_first_heading_comes_apart_so_that_a_page_can_leave_it_out() -> None:
    with_heading = to_markup("# Title\n\nText\n", "")
    without = to_markup("Text\n\n# Title\n", "")
    second_rank = to_markup("## Title\n", "")

    assert (text_of(with_heading.opening), text_of(with_heading.body)) == ("Title", "Text")
    assert (without.opening, second_rank.opening) == ("", "")


def test_front_matter_is_shown_folded_and_is_no_heading() -> None:
    markup = to_markup("---\ntitle: x\n---\n# Real\n", "")

    assert [heading.line for heading in markup.headings] == [4]
    assert text_of(markup.front_matter) == "Front mattertitle: x"
    assert text_of(markup.opening) == "Real"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert to_markup("\ufeff# A\n", "") == to_markup("# A\n", "")
    assert text_of(to_markup("\ufeff\ufeffa", "").body) == "\ufeffa"


def test_tables_keep_their_alignment_without_styles() -> None:
    html = _body("|a|b|c|\n|:-|:-:|-:|\n|1|2|3|\n")

    assert [f'<td class="{side}">' in html for side in ("left", "center", "right")] == [True, True, True]
    assert "style" not in html


def test_tasks_are_signs_not_form_fields() -> None:
    html = _body("- [ ] open\n- [x] done\n\n1. [X] first\n")

    assert text_of(html) == "☐ open ☑ done ☑ first"
    assert html.count('aria-label="Done"') == 2
    assert "<input" not in html


def test_footnotes_lead_there_and_back() -> None:
    html = _body("a[^x] b[^x]\n\n[^x]: note\n")

    for link, target in [("#md-fn1", "md-fn1"), ("#md-fnref1", "md-fnref1"), ("#md-fnref1-1", "md-fnref1-1")]:
        assert f'href="{link}"' in html
        assert f'id="{target}"' in html


def test_code_is_coloured_where_the_language_is_known() -> None:
    assert '<span class="k">def</span>' in _body("```python\ndef a(): pass\n```\n")
    assert '<span class="k">def</span>' in _body("``` {.python}\ndef a(): pass\n```\n")
    assert "<pre><code>def a(): pass\n</code></pre>" in _body("```nonsense\ndef a(): pass\n```\n")
    assert "<pre><code>def a(): pass\n</code></pre>" in _body("    def a(): pass\n")


def test_code_is_shown_as_written() -> None:
    code = "\n\n  a\t&lt; <b>\n\n"
    for language in ("", "python", "html", "console", "yaml", "markdown"):
        assert _pre(_body(f"```{language}\n{code}```\n")) == code


def test_very_much_code_is_shown_without_colour() -> None:
    line = "x = 'a'\n"
    html = _body("```python\n" + line * 20_000 + "```\n")

    assert "span" not in html
    assert html.count("x = ") == 20_000


def test_mathematics_and_diagrams_are_shown_as_text() -> None:
    html = _body("Say $a_i$ costs $5 or $6\n\n$$\na < b\n$$\n\n```mermaid\ngraph TD\n```\n")

    assert 'Say <code class="math">a_i</code> costs $5 or $6' in html
    assert '<pre class="math"><code>a &lt; b</code></pre>' in html
    assert '<pre class="mermaid"><code>graph TD\n</code></pre>' in html


def test_only_addresses_with_a_scheme_become_links_by_themselves() -> None:
    html = _body("See deployment.md, run.sh, a.example and https://a.example/x.")

    assert html.count("<a ") == 1
    assert 'href="https://a.example/x"' in html


def test_links_between_entries_are_resolved_from_the_folder_of_the_entry() -> None:
    html = to_markup('[a](../b.md#c) <a href="d.md">d</a>', "Eng/Pay").body

    assert 'href="/files/Eng/b.md#md-c"' in html
    assert 'href="/files/Eng/Pay/d.md"' in html


def test_an_image_in_a_link_leaves_the_link_alone() -> None:
    markdown = _body("[![Badge](https://img.example/b.svg)](https://ci.example)")
    raw = _body('<a href="https://ci.example"><img alt="Badge" src="https://img.example/b.svg"></a>')

    for html in (markdown, raw):
        assert html.count("<a ") == 1
        assert 'href="https://ci.example"' in html
        assert text_of(html) == "Badge image at img.example"


def test_an_image_from_nowhere_is_its_description() -> None:
    for source in ("diagram.png", "/a/b.svg", "data:image/png;base64,xx", "", "http://[bad"):
        assert '<span class="image">Flow</span>' in _body(f'<img src="{source}" alt="Flow">')
    assert '<span class="image">Image</span>' in _body("![](diagram.png)")


def test_a_wide_block_can_be_reached_by_keyboard() -> None:
    assert '<pre tabindex="0">' in _body("```\n" + "x" * 100 + "\n```\n")
    assert "<pre>" in _body("```\nx\n```\n")
    assert '<div class="wide" tabindex="0" role="group"' in _body("|a|\n|-|\n|b|\n")


def _pre(html: str) -> str:
    class Text(HTMLParser):
        text = ""

        def handle_data(self, data: str) -> None:
            self.text += data

    reader = Text()
    reader.feed(html[html.index("<code>") : html.index("</code>")])
    reader.close()
    return reader.text
