"""Small PNG files: at most 256 colours, which is enough for pages of text."""

import collections
import struct
import zlib

COLOURS = 256
# Colours that are nearer to each other than this look the same.
APART = 14


def shrink(path):
    """Rewrites a PNG of 8-bit RGB or RGBA with a palette: frequent colours first, none that looks like another of them."""
    width, height, channels, rows = read(path.read_bytes())
    pixels = [row[at : at + 3] for row in rows for at in range(0, width * channels, channels)]
    palette = palette_of(collections.Counter(pixels).most_common())
    indices = {colour: index for index, colour in enumerate(palette)}
    for colour in set(pixels) - indices.keys():
        indices[colour] = min(range(len(palette)), key=lambda index: distance(palette[index], colour))
    image = b"".join(b"\0" + bytes(indices[pixel] for pixel in pixels[at : at + width]) for at in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(image, 9)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts))


def palette_of(counted):
    palette = []
    for colour, _ in counted:
        if len(palette) < COLOURS and all(distance(colour, other) > APART**2 for other in palette):
            palette.append(colour)
    # The rest of the room is for the most frequent ones.
    rest = [colour for colour, _ in counted if colour not in palette]
    return palette + rest[: COLOURS - len(palette)]


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def read(file):
    """Width, height, bytes of a pixel, and the rows of an image that is not interlaced."""
    data, at = b"", 8
    while at < len(file):
        length, kind = struct.unpack(">I4s", file[at : at + 8])
        content = file[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", content[:10])
        elif kind == b"IDAT":
            data += content
        at += length + 12
    channels = {2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(data), width * channels
    rows, above = [], bytes(stride)
    for start in range(0, len(raw), stride + 1):
        above = unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        rows.append(above)
    return width, height, channels, rows


def unfiltered(kind, row, above, channels):
    """Undoes the filter of a row: 0 none, 1 the pixel before, 2 the one above, 3 their mean, 4 the best of three (Paeth)."""
    for at in range(len(row)):
        left, up = row[at - channels] if at >= channels else 0, above[at]
        corner = above[at - channels] if at >= channels else 0
        if kind == 1:
            row[at] = (row[at] + left) & 255
        elif kind == 2:
            row[at] = (row[at] + up) & 255
        elif kind == 3:
            row[at] = (row[at] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            row[at] = (row[at] + min((left, up, corner), key=lambda one: abs(guess - one))) & 255
    return bytes(row)
