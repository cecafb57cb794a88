"""A page as a browser reads it: its tags, attributes and texts, from the standard parser."""

import re
from html.parser import HTMLParser

KNOWN_TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title link script body a header nav img form button main section h1 h2 h3 h4 p ul ol li dl dt "
        "dd div span strong code pre kbd q svg rect bdi time table caption thead tbody tr th td label input select "
        "option textarea details summary article ins del noscript fieldset legend title progress blockquote em",
    )
)
"""Every tag that the templates write."""
LOADS = {"src", "href", "action", "formaction", "data", "poster", "srcset", "xlink:href", "srcdoc", "content"}


class ParsedPage(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.declared = 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data!r}")

    def check(self) -> None:
        """Fail if anything but the templates wrote markup: tags, handlers, styles, or addresses of other hosts."""
        for tag, attributes in self.tags:
            assert tag in KNOWN_TAGS, tag
            for name, value in attributes.items():
                assert not name.startswith("on") and name not in {"style", "srcdoc"}, (tag, name)
                if name in LOADS and tag != "meta":
                    assert value.startswith(("/console", "/docs", "#")), (tag, name, value)
        assert sum(tag == "h1" for tag, _ in self.tags) == 1
        scripts = [attributes for tag, attributes in self.tags if tag == "script"]
        assert all(one["type"] == "module" and one["src"].startswith("/console/static/") for one in scripts)

    def values(self, tag: str, name: str) -> list[str]:
        """Return an attribute of every tag of a kind that has it."""
        return [attributes[name] for one, attributes in self.tags if one == tag and name in attributes]
