"""The Large Movie Review Dataset: archive or folder → upstream's seven text files."""
import collections
import gzip
import hashlib
import http.client
import os
import re
import sys
import tarfile
import urllib.error
import urllib.request
import zlib

from interpretable_adv.data import text_files, tokens
from interpretable_adv.errors import UserError
from interpretable_adv.runs import files, reading
from interpretable_adv.runs.progress import LiveLine

ARCHIVE_NAME = 'aclImdb_v1.tar.gz'
ARCHIVE_URL = f'https://ai.stanford.edu/~amaas/data/sentiment/{ARCHIVE_NAME}'
ARCHIVE_BYTES = 84125825
ARCHIVE_MD5 = '7c2ac02c03563afcf9b574c7e56c153a'

# Reviews of train/ from these numbers on are the dev set.
FIRST_DEV = {'pos': 10621, 'neg': 10625}

# The real archive has 100,000 reviews of at most 14 kB, some 0.3 GB unpacked.
MAX_MEMBERS = 500_000
MAX_REVIEW_BYTES = 1 << 20
MAX_BYTES = 1 << 30

# Members that describe the next one: attributes, and names of more than 100 characters.
ATTRIBUTES = tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE
LONG_NAMES = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
_CHANGES_MEMBER = re.compile(rb'\d (size|GNU\.sparse)')

_REVIEW = re.compile(r'(train|test)/(pos|neg|unsup)/(\d+)_\d+\.txt')


def prepare(data_dir, archive):
    """Tokenises the reviews of `archive` (a .tar.gz or an extracted folder) into `data_dir`.

    Returns the number of reviews per file. A review of 1.3 kB is read once and only its words
    are kept, so nothing is unpacked to disk.
    """
    text_files.check_target(data_dir)
    if os.path.isdir(archive):
        reviews = _read_folder(archive)
    else:
        reviews = _read_archive(archive)
    names = [name for pairs in text_files.UPSTREAM_FILES.values() for name, _ in pairs]
    contents = {name: {} for name in [*names, text_files.UPSTREAM_UNLABELED]}
    for path, content in reviews:
        name = output_file(path)
        words = tokens.tokenize(_decode(content, archive, path))
        if not words:
            raise UserError(f'{archive}: {path} is an empty review; get a fresh archive')
        if path in contents[name]:
            raise UserError(f'{archive} holds {path} twice; get a fresh archive')
        contents[name][path] = ' '.join(words)
    for name, found in contents.items():
        if not found:
            raise UserError(f'{archive} holds no review for {name}: it must have the folders '
                            'train/pos, train/neg, train/unsup, test/pos and test/neg of aclImdb')
    # Upstream lists its files in the order of `LC_ALL=C sort`, and ids depend on it.
    text_files.write_upstream(
        data_dir, {name: map(found.get, sorted(found)) for name, found in contents.items()})
    return {name: len(found) for name, found in contents.items()}


def output_file(path):
    """The text file that a review belongs to, by its path below `aclImdb/`; None for others."""
    match = _REVIEW.fullmatch(path)
    if match is None:
        return None
    folder, kind, number = match.groups()
    if kind == 'unsup':
        return text_files.UPSTREAM_UNLABELED if folder == 'train' else None
    split = folder
    if folder == 'train' and int(number) >= FIRST_DEV[kind]:
        split = 'dev'
    return f'imdb_{kind}_{split}.txt'


def _decode(content, archive, path):
    try:
        return content.decode('utf-8')
    except UnicodeDecodeError as error:
        raise UserError(f'{archive}: {path} is not UTF-8; get a fresh archive') from error


def _read_folder(folder):
    """Yields (path below `aclImdb/`, bytes) for the reviews of an extracted archive."""
    if os.path.isdir(os.path.join(folder, 'aclImdb')):
        folder = os.path.join(folder, 'aclImdb')
    for part in ('train/pos', 'train/neg', 'train/unsup', 'test/pos', 'test/neg'):
        directory = os.path.join(folder, *part.split('/'))
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise UserError(f'cannot read {directory}: {error.strerror}; give the folder aclImdb '
                            'as the archive unpacks it') from error
        for name in names:
            if output_file(f'{part}/{name}'):
                # A plain file: the archive has no links, and one could point anywhere.
                yield f'{part}/{name}', reading.read_bytes(
                    os.path.join(directory, name), 'unpack the archive again', follow=False,
                    limit=MAX_REVIEW_BYTES)


class _Blocks:
    """The 512-byte blocks of a tar file, of which no more than `limit` bytes are read: a guard
    against small archives that unpack to huge ones, wherever in the archive the excess hides."""

    SIZE = tarfile.BLOCKSIZE

    def __init__(self, stream, limit):
        self._stream, self._left = stream, limit

    def read(self):
        """The next block; b'' at the end."""
        content = self._read(self.SIZE)
        if len(content) % self.SIZE:
            raise tarfile.ReadError('it ends within a block')
        return content

    def data(self, size):
        """Yields the `size` bytes that follow, piece by piece."""
        if not 0 <= size <= self._left:
            raise tarfile.ReadError('it unpacks to more than the dataset can have')
        padding = -size % self.SIZE
        while size:
            content = self._read(min(size, 1 << 16))
            if not content:
                raise tarfile.ReadError('it ends within a file')
            size -= len(content)
            yield content
        self._read(padding)

    def _read(self, size):
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise tarfile.ReadError('it unpacks to more than the dataset can have')
        return content


def _read_archive(archive):
    """Yields (path below `aclImdb/`, bytes) for the reviews of a .tar.gz, in archive order."""
    advice = f'give {ARCHIVE_NAME}, the folder aclImdb, or --download'
    try:
        with reading.open_regular(archive, advice) as file, gzip.open(file) as stream:
            yield from _read_tar(archive, _Blocks(stream, MAX_BYTES))
    except EOFError as error:
        raise UserError(f'{archive} is cut short; get it again, for example with '
                        '--download') from error
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f'{archive} is damaged or not the dataset\'s .tar.gz ({error}); '
                        f'get {ARCHIVE_NAME}, for example with --download') from error
    except OSError as error:
        raise UserError(f'cannot read {archive}: {error.strerror or error}') from error


def _read_tar(archive, blocks):
    """Yields the reviews of a tar file.

    `tarfile` believes what a header says: of sizes, before they are checked, and of names as long
    as the memory. Here a header is one block, and long names and attributes, which no review has,
    are passed over.
    """
    count, found = 0, blocks.read()
    if not found:
        raise tarfile.ReadError('empty file')
    while found.strip(b'\0'):
        count += 1
        if count > MAX_MEMBERS:
            raise tarfile.ReadError(f'it has more than {MAX_MEMBERS:,} members')
        try:
            member = tarfile.TarInfo.frombuf(found, 'utf-8', 'surrogateescape')
        except (tarfile.HeaderError, ValueError, OverflowError) as error:
            raise tarfile.ReadError(f'a header is damaged ({error}), so its end is missing'
                                    ) from error
        path = _safe_path(archive, member)
        content = blocks.data(0 if member.isdir() else member.size)
        if path:
            yield path, b''.join(content)
        elif member.type in ATTRIBUTES:
            _check_attributes(archive, content)
        else:
            collections.deque(content, 0)  # passes over it
        found = blocks.read()
        if not found:
            raise tarfile.ReadError('its end is missing')
    # Read on to gzip's checksum; a tar ends with two blocks of zeros or more.
    count = 0
    while content := blocks.read():
        count += 1
        if content.strip(b'\0'):
            raise tarfile.ReadError('there is something after its end, or its end is missing')
    if not count:
        raise tarfile.ReadError('its end is missing')


def _check_attributes(archive, content):
    """Refuses attributes (pax) by which a member is not what its header says."""
    known, end = b'', b''
    for piece in content:
        known = end + piece
        if _CHANGES_MEMBER.search(known):
            raise UserError(f'{archive} is unsafe: it declares sizes or holes of files apart from '
                            f'them; get {ARCHIVE_NAME}, for example with --download')
        end = known[-32:]


def _safe_path(archive, member):
    """The path of a review below `aclImdb/`, or '' for a member that is none; refuses members
    that an archive of plain files would not have."""
    path = member.name.removeprefix('./')
    if path.startswith('/') or '..' in path.split('/') or '\\' in path:
        raise UserError(f'{archive} is unsafe: {path!r} lies outside its folder')
    if member.isdir() or member.type in (*ATTRIBUTES, *LONG_NAMES):
        return ''
    if not member.isreg() or member.issparse():
        raise UserError(f'{archive} is unsafe: {path!r} is neither a plain file nor a folder')
    top, _, path = path.partition('/')
    if top != 'aclImdb' or output_file(path) is None:
        return ''
    if member.size > MAX_REVIEW_BYTES:
        raise UserError(f'{archive} is unsafe: {path!r} has {member.size:,} bytes')
    return path


def download(directory, url=ARCHIVE_URL, size=ARCHIVE_BYTES, md5=ARCHIVE_MD5):
    """Fetches the archive into `directory`, continuing an earlier attempt; returns its path.

    The file takes its name only when size and MD5 are right. An interrupted download stays
    beside it with the ending `.part`.
    """
    path = os.path.join(directory, os.path.basename(url))
    if os.path.exists(path) and os.path.getsize(path) == size and _md5(path) == md5:
        return path
    text_files.check_target(directory)
    part = path + '.part'
    again = 'run the same command again to continue'
    try:
        with files.locked(directory, '--data_dir'):
            _fetch(url, part, size)
    except urllib.error.HTTPError as error:
        raise UserError(f'{url}: the server answers {error.code} {error.reason}; {again}, or give '
                        'the file with --archive') from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError,
            ConnectionError) as error:
        reason = getattr(error, 'reason', None) or error
        raise UserError(f'{url}: the download broke off ({reason}); {again}, or give the file '
                        'with --archive') from error
    except OSError as error:
        raise UserError(f'cannot write {part}: {error.strerror or error}') from error
    if os.path.getsize(part) < size:
        raise UserError(f'{url}: the download broke off after {os.path.getsize(part):,} of '
                        f'{size:,} bytes; {again}')
    if os.path.getsize(part) > size or _md5(part) != md5:
        os.unlink(part)
        raise UserError(f'{url}: the file is not the dataset (size or MD5 differ), so it was '
                        'deleted; try again, or give the file with --archive')
    os.replace(part, path)
    return path


def _fetch(url, part, size):
    """Appends to `part` what it lacks of the `size` bytes at `url`."""
    start = os.path.getsize(part) if os.path.exists(part) else 0
    if start == size:
        return
    request = urllib.request.Request(url)
    if 0 < start < size:
        request.add_header('Range', f'bytes={start}-')
    with urllib.request.urlopen(request, timeout=60) as response:
        if response.status != 206:  # the server sends the whole file
            start = 0
        files.make_directory(os.path.dirname(part))
        with open(part, 'r+b' if start else 'wb') as stream:
            stream.seek(start)
            progress = _Progress(size, start)
            # one byte too many is enough to know that the file is wrong
            while start <= size and (content := response.read(min(1 << 16, size + 1 - start))):
                stream.write(content)
                start += len(content)
                progress.show(start)
            progress.close()


class _Progress:
    """A live bar on a terminal, a line per tenth elsewhere."""

    def __init__(self, size, start):
        self._size = size
        self._line = LiveLine(stream=sys.stderr)
        self._shown = self._step(start)

    def _step(self, done):
        return done * (1000 if self._line.live else 10) // self._size

    def show(self, done):
        if self._step(done) == self._shown:
            return
        self._shown = self._step(done)
        share = done / self._size
        text = f'{share:5.0%} of {self._size / 1e6:.0f} MB'
        if self._line.live:
            self._line.show(f'[{"#" * int(40 * share):40}] {text}')
        else:
            self._line.print(text)

    def close(self):
        self._line.close()


def _md5(path):
    with open(path, 'rb') as stream:
        return hashlib.file_digest(stream, 'md5').hexdigest()
