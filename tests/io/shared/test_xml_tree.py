"""XML: the tree, what is refused, encodings, and the way back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.errors import ModelError, ParseError
from besag.io.shared import xml_tree
from besag.io.shared.metadata import KeptPiece
from besag.io.shared.xml_tree import COMMENT, Element, XmlDocument, as_data, from_data, numbers_of, parse, render
from besag.model.metadata import Metadata


def parsed(text: str | bytes) -> XmlDocument:
    return parse(text.encode() if isinstance(text, str) else text, "file.xml")


def test_a_tree() -> None:
    root, comments = parsed(
        '<!-- one --><a x="1 &lt;">t<b/>u<!-- two -->\n<b y="&#65;">&amp;<![CDATA[<&]]></b></a><!--three-->'
    )
    assert comments == (" one ", "three")
    assert (root.tag, root.attributes, root.text) == ("a", {"x": "1 <"}, "tu\n")
    assert [child.tag for child in root.children] == ["b", COMMENT, "b"]
    assert root.children[1].text == " two "
    assert [(b.attributes, b.text, b.line) for b in root.all("b")] == [({}, "", 1), ({"y": "A"}, "&<&", 2)]
    assert root.first("b") is root.children[0]
    assert root.first("c") is None


def test_a_document_type_is_passed_over() -> None:
    text = """<?xml version="1.0"?>
    <!DOCTYPE a [ <!ELEMENT a (b)*> <!-- inside --> <!ATTLIST a kind (x|y) "x"> ]>
    <a><b/></a>"""
    root, comments = parsed(text)
    assert (root.attributes, len(root.children), comments) == ({}, 1, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file.xml:1:1: broken XML: no element found"),
        ("<a>", "file.xml:1:4: broken XML: no element found"),
        ("<a>\n <b></a>", "file.xml:2:7: broken XML: mismatched tag"),
        ("  <a x=1/>", "file.xml:1:8: broken XML"),
        ("<a/><b/>", "file.xml:1:5: broken XML: junk after document element"),
        ("<a>&nothing;</a>", "file.xml:1:4: broken XML: undefined entity"),
        ('<!DOCTYPE a [\n<!ENTITY b "c">]><a>&b;</a>', "file.xml:2:12: the file declares the entity 'b'; entities are"),
        ('<!DOCTYPE a [<!ENTITY % b "c"> %b;]><a/>', "file.xml:1:27: the file declares the entity 'b'"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "the file declares the entity 'b'"),
        ('<!DOCTYPE a SYSTEM "a.dtd">\n<a>&b;</a>', "file.xml:2:4: the file refers to the entity 'b'"),
        ("<a>\0</a>", "file.xml:1: expected text, but there is a zero byte"),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><a>\0</a>", "broken XML"),
        ("<?xml version='1.0' encoding='punycode'?><a/>", "expected the encoding UTF-8, ISO-8859-n .* got 'punycode'"),
        ("<?xml version='1.0' encoding='ISO-8859-99'?><a/>", "not in the encoding that is declared"),
        ("<a>" * 100 + "<b/>", "file.xml:1:301: expected at most 100 elements inside each other"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(text)


def test_bombs_of_entities() -> None:
    laughs = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 30))
    with pytest.raises(
        ParseError, match="declares the entity 'a0'; entities are refused: write out what it stands for"
    ):
        parsed(f'<!DOCTYPE a [<!ENTITY a0 "ha">{laughs}]><a>&a29;</a>')


def test_defaults_of_attributes_do_not_multiply() -> None:
    text = f'<!DOCTYPE a [<!ATTLIST b x CDATA "{"x" * 100_000}">]><a>{"<b/>" * 10_000}</a>'
    assert all(not child.attributes for child in parsed(text).root.children)


def test_declarations_of_attributes_are_bounded() -> None:
    def declared(count: int) -> str:
        attributes = " ".join(f'x{i} CDATA ""' for i in range(count))
        return f"<!DOCTYPE a [<!ATTLIST a {attributes}>]><a/>"

    assert parsed(declared(100)).root.attributes == {}
    with pytest.raises(ParseError, match="expected at most 100 attributes in <!ATTLIST> declarations, got more"):
        parsed(declared(200_000))


def test_the_number_of_elements_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_tree, "MAX_ELEMENTS", 10)
    assert len(parsed(f"<a>{'<b/>' * 9}</a>").root.children) == 9
    for more in ("<b/>", "<!---->"):
        with pytest.raises(ParseError, match=r"file.xml:1:40: expected at most 10 elements in a file of"):
            parsed(f"<a>{'<b/>' * 9}{more}</a>")


@pytest.mark.parametrize("depth", [99, 1_000_000])
def test_depth(depth: int) -> None:
    if depth < 100:
        assert parsed("<a>" * depth + "</a>" * depth).root.tag == "a"
    else:
        with pytest.raises(ParseError, match="at most 100 elements inside each other"):
            parsed("<a>" * depth)


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("", "utf-8"),
        ("", "latin-1"),
        ('<?xml version="1.0"?>', "latin-1"),
        ('<?xml version="1.0" encoding="UTF-8"?>', "utf-8"),
        ('<?xml version="1.0" encoding="UTF-8"?>', "latin-1"),
        ('<?xml version="1.0" encoding="US-ASCII"?>', "latin-1"),
        ("<?xml version='1.0' encoding='iso-8859-1' standalone='yes' ?>", "latin-1"),
        ('<?xml version="1.0" encoding="windows-1252"?>', "cp1252"),
        ('  \r\n<?xml version="1.0" encoding="ISO-8859-15"?>', "iso-8859-15"),
    ],
)
def test_encodings(declared: str, encoding: str) -> None:
    assert parsed((declared + "<a>zurück</a>").encode(encoding)).root.text == "zurück"


def test_what_is_declared_holds() -> None:
    data = '<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>'.encode()
    assert parsed(data).root.text == "Ã¼"
    with pytest.raises(ParseError, match="the text is not in the encoding that is declared"):
        parsed(b'<?xml version="1.0" encoding="windows-1252"?><a>\x81</a>')


def test_lines_and_columns_count_the_declaration() -> None:
    with pytest.raises(ParseError, match=r"file.xml:3:6: broken XML") as caught:
        parsed("  \n<?xml version='1.0'?>\n<a> & </a>")
    assert (caught.value.line, caught.value.column) == (3, 6)
    assert parsed('  <?xml version="1.0"?>\r\n\r\n<a/>').root.line == 3


def test_numbers() -> None:
    assert numbers_of(parsed("<a>1 .5<!-- two -->\r\n3e-1</a>").root, "f").tolist() == [1, 0.5, 0.3]
    for wrong in ("x", "1_0", "٣", "1,2"):
        with pytest.raises(ParseError, match=r"f:2: expected numbers in <b>, got "):
            numbers_of(parsed(f"<a>\n<b>1 {wrong}</b></a>").root.children[0], "f")


TEXT = st.text(
    st.characters(min_codepoint=9, exclude_categories=["Cs"]).filter(lambda c: c.isprintable() or c in "\r\n\t")
)
TAG = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
LEAF = st.builds(Element, TAG, st.dictionaries(TAG, TEXT, max_size=2), TEXT)
TREE = st.recursive(LEAF, lambda inner: st.builds(Element, TAG, children=st.lists(inner, min_size=1, max_size=3)))


def kept(data: object) -> KeptPiece:
    return KeptPiece(Metadata({"xdsl": data})["xdsl"], "xdsl", "'A'")


@settings(max_examples=50)
@given(TREE)
def test_what_is_written_is_read(element: Element) -> None:
    root, comments = parse(render(element, [" c "]), "f")
    assert as_data(root) == as_data(element) == as_data(from_data(kept(as_data(element))))
    assert comments == (" c ",)


def test_layout() -> None:
    root = Element("a", children=[Element("b", {"x": '"<&\n'}, "<&>"), Element(COMMENT, text=" c "), Element("d")])
    assert render(root).decode().splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<a>",
        '\t<b x="&quot;&lt;&amp;&#10;">&lt;&amp;&gt;</b>',
        "\t<!-- c -->",
        "\t<d />",
        "</a>",
    ]


@pytest.mark.parametrize("character", ["\0", "\x0b", "\ufffe", "\ud800"])
def test_characters_that_xml_has_not(character: str) -> None:
    for element in (Element("a", text=character), Element("a", {"b": character}), Element(COMMENT, text=character)):
        with pytest.raises(ModelError, match=r"XML cannot hold the character .* save the model as .json"):
            render(element)


DEEP: dict[str, object] = {"tag": "a"}
for _ in range(100):
    DEEP = {"tag": "a", "children": [DEEP]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "metadata 'xdsl' of 'A': expected a dict, got 5; change it with model.with_metadata"),
        ({}, "metadata 'xdsl/tag' of 'A': expected the tag of an XML element, got None"),
        ({"tag": 5}, "'xdsl/tag' of 'A': expected a text, got 5"),
        ({"tag": "a b"}, "expected the tag of an XML element, got 'a b'"),
        ({"tag": "1"}, "expected the tag of an XML element, got '1'"),
        ({"tag": "a", "text": 5}, "'xdsl/text' of 'A': expected a text, got 5"),
        ({"tag": "a", "text": "\0"}, "'xdsl/text' of 'A': expected characters that XML has, got"),
        ({"tag": "a", "attributes": [1]}, "'xdsl/attributes' of 'A': expected a dict, got"),
        ({"tag": "a", "attributes": {"x": 1}}, "'xdsl/attributes/x' of 'A': expected a text, got 1"),
        ({"tag": "a", "attributes": {"x=": ""}}, "expected names of XML attributes, got {'x=': ''}"),
        ({"tag": "a", "children": "b"}, "'xdsl/children' of 'A': expected a list, got 'b'"),
        ({"tag": "a", "children": ["b"]}, "'xdsl/children/0' of 'A': expected a dict, got 'b'"),
        ({"tag": "!--", "text": "a -- b"}, "'xdsl/text' of 'A': expected the text of an XML comment, without"),
        ({"tag": "!--", "text": "a -"}, "expected the text of an XML comment"),
        (DEEP, "expected at most 100 elements inside each other, got"),
    ],
)
def test_data_that_are_no_element(data: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_data(kept(data))
