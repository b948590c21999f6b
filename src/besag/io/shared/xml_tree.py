"""A safe reader and a writer of XML: a tree of elements, on the standard library's expat.

A document type with <!ELEMENT> and <!ATTLIST> declarations is skipped. Refused are entities defined by a file, which
may grow without bound or name other files; more than MAX_DEPTH nested elements; more than MAX_ELEMENTS elements, or one
for each 16 characters of a larger file; and more than MAX_ATTRIBUTES declarations of attributes, on which expat spends
time with every element. So time and memory are linear in the size of the file.

The encoding is UTF-8 or the one that the XML declaration names; if that is UTF-8, ASCII or missing and the bytes are
not valid UTF-8, it is Latin-1. White space before the XML declaration is allowed.

A comment is an element with the tag COMMENT, so that it keeps its place among the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.parsers import expat

from besag.arrays import Array
from besag.errors import ModelError, ParseError
from besag.io.shared.files import floats, is_number, text_of
from besag.io.shared.metadata import KeptPiece

COMMENT = "!--"
MAX_DEPTH = 100
MAX_ELEMENTS = 1 << 20
MAX_ATTRIBUTES = 100

_DECLARATION = re.compile(r"\s*<\?xml\s[^<>?]*\?>")
_ENCODING = re.compile(r"encoding\s*=\s*[\"']([^\"']*)[\"']")
_DEFAULT_ENCODING = re.compile(r"(?i:utf-?8|(us-)?ascii|iso-8859-1|latin-?1)")
_OTHER_ENCODING = re.compile(r"(?i:iso-8859-[0-9]{1,2}|(windows-|cp)125[0-9])")
_NAME = re.compile(r"(?!\d)[\w:][\w:.\-]*")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_QUOTES = {**_ESCAPES, **str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})}


@dataclass(slots=True)
class Element:
    """An element or a comment. text: all text directly inside. line: where it begins, if it was read."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)
    line: int | None = None

    def all(self, tag: str) -> list[Element]:
        """The children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        """The first child with a tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)


class XmlDocument(NamedTuple):
    """A file: its root, and the comments before and after it."""

    root: Element
    comments: tuple[str, ...] = ()


# Reading --------------------------------------------------------------------------------------------------------------


def parse(data: bytes, path: str) -> XmlDocument:
    """The elements of an XML file; ParseError, with line and column, if it is not well formed or is refused."""
    text = _decoded(data, path)
    declaration = _DECLARATION.match(text)
    if declaration is not None:  # it is blanked, so that lines and columns stay the same
        text = re.sub(r"[^\n]", " ", declaration.group()) + text[declaration.end() :]
    return _Builder(path, max(MAX_ELEMENTS, len(text) // 16)).document(text)


def _decoded(data: bytes, path: str) -> str:
    declaration = _DECLARATION.match(data[:1024].decode("latin-1"))
    found = None if declaration is None else _ENCODING.search(declaration.group())
    name = "utf-8" if found is None else found.group(1)
    if _OTHER_ENCODING.fullmatch(name):
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError) as error:
            raise ParseError(f"the text is not in the encoding that is declared: {error}", path=path) from None
    if _DEFAULT_ENCODING.fullmatch(name) is None:
        raise ParseError(
            f"expected the encoding UTF-8, ISO-8859-n or windows-125n, got {name[:40]!r}", path=path, line=1
        )
    if name.lower().startswith(("iso", "latin")):
        return data.decode("latin-1")
    return text_of(data, path)


class _Builder:
    """The state of parsing: the open elements, each with the pieces of its text."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most = path, most
        self.count = self.declared = 0
        self.in_doctype = False
        self.root: Element | None = None
        self.comments: list[str] = []
        self.stack: list[tuple[Element, list[str]]] = []
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True  # defaults of <!ATTLIST> could be long, and be added to every element
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = self._comment
        parser.StartDoctypeDeclHandler = self._start_doctype
        parser.EndDoctypeDeclHandler = self._end_doctype
        parser.AttlistDeclHandler = self._declare_attribute
        parser.EntityDeclHandler = self._refuse_entity
        parser.ExternalEntityRefHandler = self._refuse_reference
        parser.SkippedEntityHandler = self._refuse_reference

    def document(self, text: str) -> XmlDocument:
        try:
            self.parser.Parse(text, True)
        except expat.ExpatError as error:
            message = f"broken XML: {expat.ErrorString(error.code)}"
            raise ParseError(message, path=self.path, line=error.lineno, column=error.offset + 1) from None
        if self.root is None:
            raise ParseError("expected an XML element, got none", path=self.path)
        return XmlDocument(self.root, tuple(self.comments))

    def _fail(self, message: str) -> ParseError:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return ParseError(message, path=self.path, line=line, column=column)

    def _add(self, element: Element) -> None:
        self.count += 1
        if self.count > self.most:
            raise self._fail(f"expected at most {self.most} elements in a file of this size, got more")
        if self.stack:
            self.stack[-1][0].children.append(element)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self._fail(f"expected at most {MAX_DEPTH} elements inside each other, got more")
        element = Element(tag, attributes, line=self.parser.CurrentLineNumber)
        self._add(element)
        if not self.stack:
            self.root = element
        self.stack.append((element, []))

    def _end(self, _tag: str) -> None:
        element, pieces = self.stack.pop()
        element.text = "".join(pieces)

    def _characters(self, text: str) -> None:
        self.stack[-1][1].append(text)

    def _comment(self, text: str) -> None:
        if not self.stack and not self.in_doctype:
            self.comments.append(text)
        elif self.stack:
            self._add(Element(COMMENT, text=text, line=self.parser.CurrentLineNumber))

    def _start_doctype(self, *_: object) -> None:
        self.in_doctype = True

    def _end_doctype(self) -> None:
        self.in_doctype = False

    def _declare_attribute(self, *_: object) -> None:
        self.declared += 1
        if self.declared > MAX_ATTRIBUTES:
            raise self._fail(f"expected at most {MAX_ATTRIBUTES} attributes in <!ATTLIST> declarations, got more")

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self._fail(
            f"the file declares the entity {name[:40]!r}; entities are refused: write out what it stands for"
        )

    def _refuse_reference(self, name: str | None, *_: object) -> int:
        raise self._fail(f"the file refers to the entity {(name or '')[:40]!r}, which it does not contain")


def numbers_of(element: Element, path: str) -> Array:
    """The numbers in the text of an element, separated by white space."""
    data = element.text.encode("ascii", "replace")
    try:
        return floats(data)
    except ValueError:
        wrong = next(token for token in data.split() if not is_number(token))[:40].decode()
        message = f"expected numbers in <{element.tag}>, got {wrong!r}"
        raise ParseError(message, path=path, line=element.line) from None


# Writing --------------------------------------------------------------------------------------------------------------


def render(root: Element, comments: Sequence[str] = ()) -> bytes:
    """An XML file in UTF-8, one element per line; ModelError if a text has a character that XML cannot hold."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *(f"<!--{_checked(text)}-->" for text in comments)]
    return ("\n".join([*lines, *_lines(root, "")]) + "\n").encode()


def _lines(element: Element, indent: str) -> Iterator[str]:
    if element.tag == COMMENT:
        yield f"{indent}<!--{_checked(element.text)}-->"
        return
    attributes = "".join(f' {key}="{_checked(text).translate(_IN_QUOTES)}"' for key, text in element.attributes.items())
    text = _checked(element.text).translate(_ESCAPES)
    if element.children:
        yield f"{indent}<{element.tag}{attributes}>{text.strip()}"
        for child in element.children:
            yield from _lines(child, indent + "\t")
        yield f"{indent}</{element.tag}>"
    elif text:
        yield f"{indent}<{element.tag}{attributes}>{text}</{element.tag}>"
    else:
        yield f"{indent}<{element.tag}{attributes} />"


def _checked(text: str) -> str:
    wrong = _NOT_XML.search(text)
    if wrong is not None:
        raise ModelError(f"XML cannot hold the character {wrong.group()!r} of {text[:60]!r}; save the model as .json")
    return text


# Metadata -------------------------------------------------------------------------------------------------------------


def as_data(element: Element) -> dict[str, Any]:
    """An element as metadata can hold it: its tag and, if there are any, attributes, text and children.

    >>> as_data(Element("font", {"size": "8"}))
    {'tag': 'font', 'attributes': {'size': '8'}}
    """
    data: dict[str, Any] = {"tag": element.tag}
    if element.attributes:
        data["attributes"] = dict(element.attributes)
    text = element.text.strip() if element.children else element.text  # indentation does not count
    if text:
        data["text"] = text
    if element.children:
        data["children"] = [as_data(child) for child in element.children]
    return data


def from_data(kept: KeptPiece, depth: int = 1) -> Element:
    """The inverse of `as_data`; ModelError if the data are something that XML cannot hold."""
    tag, children = kept.at("tag"), kept.at("children").items()
    if tag.text() == COMMENT:
        return comment_of(kept.at("text"))
    if _NAME.fullmatch(tag.text()) is None:
        raise tag.wrong("the tag of an XML element")
    if depth >= MAX_DEPTH and children:
        raise kept.wrong(f"at most {MAX_DEPTH} elements inside each other")
    return Element(
        tag.text(),
        attributes_of(kept.at("attributes")),
        _sound(kept.at("text")),
        [from_data(child, depth + 1) for child in children],
    )


def attributes_of(kept: KeptPiece) -> dict[str, str]:
    """Attributes of an element."""
    if not all(_NAME.fullmatch(key) for key in kept.entries()):
        raise kept.wrong("names of XML attributes")
    return {key: _sound(entry) for key, entry in kept.entries().items()}


def comment_of(kept: KeptPiece) -> Element:
    """A comment with a text."""
    text = _sound(kept)
    if "--" in text or text.endswith("-"):
        raise kept.wrong('the text of an XML comment, without "--" and no "-" at its end')
    return Element(COMMENT, text=text)


def _sound(kept: KeptPiece) -> str:
    if _NOT_XML.search(kept.text()):
        raise kept.wrong("characters that XML has")
    return kept.text()
