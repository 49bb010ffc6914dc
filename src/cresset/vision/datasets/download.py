"""Published files: fetched with a time limit, checked by md5, unpacked. Offline, the error says which file to put
where.
"""

import hashlib
import os
import sys

SECONDS = 20  # without an answer


def md5_of(path):
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def is_whole(path, md5=None):
    """Whether the file is there and has the md5 that was published (any, if None)."""
    return os.path.isfile(path) and (md5 is None or md5_of(path) == md5)


def fetch(who, urls, folder, filename, md5=None, progress=False):
    """`filename` in `folder`, from the first of `urls` that gives it. What is there already is not fetched again;
    `progress` says what is.
    """
    path = os.path.join(folder, filename)
    if is_whole(path, md5):
        return path
    import shutil
    import urllib.request

    os.makedirs(folder, exist_ok=True)
    reasons = []
    for url in urls:
        part = path + ".part"
        if progress:
            sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        try:
            request = urllib.request.Request(url, headers={"User-Agent": "cresset"})
            with urllib.request.urlopen(request, timeout=SECONDS) as answer, open(part, "wb") as file:
                shutil.copyfileobj(answer, file)
            if not is_whole(part, md5):
                raise OSError(f"its md5 is {md5_of(part)}, {md5} was published")
            os.replace(part, path)
            return path
        except (OSError, ValueError) as error:
            reasons.append(f"{url}: {error}")
            if os.path.exists(part):
                os.remove(part)
    sum_text = f" (md5 {md5})" if md5 else ""
    raise RuntimeError(
        f"{who}: {filename} could not be fetched ({'; '.join(reasons)}). It is published at {' and '.join(urls)}; put "
        f"it{sum_text} at {path}"
    )


def unpack(path, folder):
    """The members of a tar or zip archive in `folder`. Members that lead outside are refused."""
    if path.endswith(".zip"):
        import zipfile

        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        return
    import tarfile

    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
