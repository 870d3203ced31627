"""Small real files for the tests: a PDF written by hand, a Wikipedia dump."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

PICTURE = "a picture"
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""


def pdf(pages: Sequence[str], title: str = "") -> bytes:
    """Write a PDF: a page for each text, with a line of it on each line; `PICTURE` gives a page with a picture alone."""
    pages_at = [6 + 2 * i for i in range(len(pages))]
    kids = " ".join(f"{n} 0 R" for n in pages_at)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        "<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\nA\nendstream",
        f"<</Title({title})>>",
    ]
    for n, text in zip(pages_at, pages, strict=True):
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n"))
        drawn = "/P Do" if text == PICTURE else f"BT /F 12 Tf 72 720 Td {lines}ET" if text else ""
        resources = "/XObject<</P 4 0 R>>" if text == PICTURE else "/Font<</F 3 0 R>>"
        box = "/MediaBox[0 0 612 792]"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}/Resources<<{resources}>>/Contents {n + 1} 0 R>>")
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    data, places = b"%PDF-1.4\n", []
    for n, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{n} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    return data + f"{head}<</Size {len(objects) + 1}/Root 1 0 R/Info 5 0 R>>\nstartxref\n{len(data)}\n%%EOF\n".encode()


def page(number: int, title: str, text: str, *, space: int = 0, redirect: str = "", model: str = "wikitext") -> str:
    """Write a page of a dump as MediaWiki does."""
    leads = f'\n    <redirect title="{redirect}" />' if redirect else ""
    return f"""  <page>
    <title>{escape(title)}</title>
    <ns>{space}</ns>
    <id>{number}</id>{leads}
    <revision>
      <id>{number}00</id>
      <timestamp>2024-01-01T00:00:00Z</timestamp>
      <contributor><username>Someone</username><id>9</id></contributor>
      <model>{model}</model>
      <format>text/x-wiki</format>
      <text bytes="{len(text.encode())}" xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


def dump(*pages: str) -> bytes:
    """Write a whole dump."""
    return (HEAD + "".join(pages) + "</mediawiki>\n").encode()
