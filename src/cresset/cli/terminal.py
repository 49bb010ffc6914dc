"""What a terminal can show: a line that is rewritten while something runs, curves in Braille dots, pictures in half
blocks.
"""

import os
import shutil
import sys
import time

# The bit of each of the 2 x 4 dots of a Braille character, by column and row.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
SHADES = " .:-=+*#%@"


def has_color(stream):
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def can_write(stream, text):
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class LiveLine:
    """One line that follows the work on a terminal; in a file or pipe only finished lines appear."""

    def __init__(self, stream=None, every=0.1):
        self.stream, self.every, self.shown = stream or sys.stdout, every, 0.0
        self.live = self.stream.isatty()

    def show(self, text):
        """Rewrite the line, at most every `every` seconds."""
        now = time.monotonic()
        if self.live and now - self.shown >= self.every:
            self.shown = now
            self.stream.write("\r\x1b[2K" + text[: shutil.get_terminal_size().columns - 1])
            self.stream.flush()

    def keep(self, text):
        """Write a line that stays."""
        self.stream.write(("\r\x1b[2K" if self.live else "") + text + "\n")
        self.stream.flush()


def bar(done, total, width=24):
    """A bar of `width` characters, filled as far as the work is done."""
    filled = round(width * done / total) if total else width
    return "#" * filled + "." * (width - filled)


def curve(values, width=60, height=8, title="", unit=str, stream=None):
    """A curve as lines of text: the values from left to right, the largest and the smallest at the left margin."""
    if not values:
        return f"  {title}: nothing to draw"
    low, high = min(values), max(values)
    braille = can_write(stream or sys.stdout, "\u28ff")
    columns, rows = (2 * width, 4 * height) if braille else (width, height)
    heights = []
    for column in range(columns):  # the value at this place of the line through the points
        place = column * (len(values) - 1) / max(columns - 1, 1)
        left = int(place)
        right = min(left + 1, len(values) - 1)
        value = values[left] + (values[right] - values[left]) * (place - left)
        heights.append(round((rows - 1) * (high - value) / (high - low)) if high > low else rows // 2)
    canvas = [[0] * width for _ in range(height)]
    before = heights[0]
    for column, row in enumerate(heights):
        first, last = sorted((row, before + (row > before) - (row < before)))
        for y in range(first, last + 1):  # joined to the point before
            if braille:
                canvas[y // 4][column // 2] |= DOTS[column % 2][y % 4]
            else:
                canvas[y][column] = 1
        before = row
    margins = [unit(high), *[""] * (height - 2), unit(low)] if height > 1 else [unit(high)]
    margin = max(map(len, margins))
    letter = (lambda bits: chr(0x2800 + bits)) if braille else (lambda bits: "*" if bits else " ")
    lines = [f"  {text:>{margin}} | {''.join(map(letter, row))}".rstrip() for text, row in zip(margins, canvas)]
    return "\n".join([f"  {title}"] * bool(title) + lines)


def picture(rows, stream=None):
    """A gray picture (rows of numbers from 0 to 1) as lines of text: half blocks in color where the terminal has it,
    else letters.
    """
    stream = stream or sys.stdout
    if not (has_color(stream) and can_write(stream, "\u2580")):
        return ["".join(SHADES[min(9, int(10 * value))] * 2 for value in row) for row in rows]
    lines = []
    for upper, lower in zip(rows[::2], [*rows[1::2], *([[0.0] * len(rows[0])] if len(rows) % 2 else [])]):
        cells = (f"\x1b[38;5;{gray(a)};48;5;{gray(b)}m\u2580" for a, b in zip(upper, lower))
        lines.append("".join(cells) + "\x1b[0m")
    return lines


def gray(value):
    """One of the 24 grays of a terminal."""
    return 232 + min(23, int(24 * value))


def side_by_side(pictures, captions, gap="  "):
    """Pictures in one row with a caption under each; `captions` are (text, is it good)."""
    stream = sys.stdout
    color = has_color(stream)
    width = 8 if color else 16
    lines = [gap + gap.join(parts) for parts in zip(*pictures)]
    marks = []
    for text, good in captions:
        text = f"{text:^{width}}"
        marks.append(f"\x1b[{32 if good else 31}m{text}\x1b[0m" if color else text)
    return "\n".join([*lines, gap + gap.join(marks)])
