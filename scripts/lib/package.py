"""Makes the zips of a package and its template, in which the functions' code is a zip instead of a crate to build.

The template is edited as text, so that it stays readable and needs no YAML library. Times in the zips are fixed: the same
binaries make the same zips.
"""

import pathlib
import re
import sys
import zipfile

source, built, directory = map(pathlib.Path, sys.argv[1:4])
architecture = sys.argv[4]
text = source.read_text()
functions = re.findall(r"^  (\w+):\n    Type: AWS::Serverless::Function\n", text, re.MULTILINE)
for function in functions:
    bootstrap = built / function / "bootstrap"
    if not bootstrap.is_file():
        sys.exit(f"package: {function} was not built")
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o755 << 16
    entry.create_system = 3
    with zipfile.ZipFile(directory / f"{function}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry, bootstrap.read_bytes())
    start = text.index(f"  {function}:\n    Type: AWS::Serverless::Function\n")
    block = text[start:]
    block, found = re.subn(r"    Metadata:\n      BuildMethod: .*\n      BuildProperties: .*\n", "", block, count=1)
    block, also = re.subn(r"      CodeUri: .*\n", f"      CodeUri: {function}.zip\n", block, count=1)
    if found + also != 2:
        sys.exit(f"package: {function} has no build to replace")
    text = text[:start] + block
text, layers = re.subn(r"    Metadata:\n      # registrations/Makefile .*\n      BuildMethod: makefile\n", "", text)
if layers != 1:
    sys.exit("package: the layer of registrations has no build to replace")
text = text.replace("ContentUri: ../registrations", "ContentUri: registrations")
# The package is for one architecture.
text = re.sub(
    r"(  Architecture:\n    Type: String\n    Default: )\w+(\n    AllowedValues: )\[.*\]", rf"\g<1>{architecture}\g<2>[{architecture}]", text
)
if "../" in text:
    sys.exit("package: the template still refers to the repository")
(directory / "template.yaml").write_text(text)
