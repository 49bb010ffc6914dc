"""Text that a file brought, in messages and on terminals: one line, without characters that a terminal obeys."""

__all__ = ["printable"]


def printable(text, length=None):
    """`text` with everything that is not a visible character or a space escaped, and cut to `length` characters.

    >>> from cresset.serialization.quoting import printable
    >>> printable("a\\x1b[2Jb\\n")
    'a\\\\x1b[2Jb\\\\n'
    >>> printable("abcdef", 4)
    'abcd...'
    """
    if length is not None and len(text) > length:
        text = text[:length] + "..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
