"""A small picture in memory, with rectangles, lines and digits, that writes itself as a PNG file."""

import struct
import zlib

# The digits and two signs in a font of 3 x 5 dots, a row a number.
FONT = {
    "0": (7, 5, 5, 5, 7), "1": (2, 6, 2, 2, 7), "2": (7, 1, 7, 4, 7), "3": (7, 1, 7, 1, 7), "4": (5, 5, 7, 1, 1),
    "5": (7, 4, 7, 1, 7),
    "6": (7, 4, 7, 5, 7), "7": (7, 1, 1, 2, 2), "8": (7, 5, 7, 5, 7), "9": (7, 5, 7, 1, 7), ".": (0, 0, 0, 0, 2),
    "%": (5, 1, 2, 4, 5),
}  # fmt: skip


class Canvas:
    """`width` x `height` dots of red, green and blue, 0 to 255."""

    def __init__(self, width, height, background=(255, 255, 255)):
        self.width, self.height = width, height
        self.dots = bytearray(bytes(background) * (width * height))

    def rectangle(self, left, top, width, height, color):
        left, right = max(left, 0), min(left + width, self.width)
        row = bytes(color) * max(right - left, 0)
        for y in range(max(top, 0), min(top + height, self.height)):
            at = 3 * (y * self.width + left)
            self.dots[at : at + len(row)] = row

    def line(self, points, color, thickness=2):
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = max(abs(x1 - x0), abs(y1 - y0), 1)
            for step in range(int(steps) + 1):
                x, y = x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
                self.rectangle(round(x), round(y), thickness, thickness, color)

    def text(self, left, top, text, color=(60, 60, 60), scale=2):
        for letter in text:
            for y, bits in enumerate(FONT.get(letter, (0,) * 5)):
                for x in range(3):
                    if bits >> (2 - x) & 1:
                        self.rectangle(left + x * scale, top + y * scale, scale, scale, color)
            left += 4 * scale

    def png(self):
        """The picture as the bytes of a PNG file."""
        rows = b"".join(b"\0" + self.dots[3 * self.width * y : 3 * self.width * (y + 1)] for y in range(self.height))
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        )
