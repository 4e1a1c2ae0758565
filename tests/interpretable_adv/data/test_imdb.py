"""Tests of `interpretable_adv.data.imdb`: archive, folder, download, and the real dataset."""
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc

import pytest

from interpretable_adv import cli, data
from interpretable_adv.data import imdb
from interpretable_adv.data.__main__ import main
from interpretable_adv.errors import UserError

MEMBERS = {
    'aclImdb/README': b'about',
    'aclImdb/imdb.vocab': b'the\nfilm\n',
    'aclImdb/test/neg/0_2.txt': b'A bad film.',
    'aclImdb/test/pos/0_10.txt': b'A good film.<br />Really!',
    'aclImdb/train/labeledBow.feat': b'9 0:9',
    'aclImdb/train/neg/10624_1.txt': b'The last training review',
    'aclImdb/train/neg/10625_1.txt': b'The first dev review',
    'aclImdb/train/neg/9_1.txt': b'nine',
    'aclImdb/train/pos/1000_8.txt': b'after ten',
    'aclImdb/train/pos/10620_7.txt': b'before eleven',
    'aclImdb/train/pos/10621_7.txt': 'Voilà, "dev" 7½'.encode(),
    'aclImdb/train/pos/10_9.txt': b'underscore sorts last',
    'aclImdb/train/unsup/10_0.txt': b'no\nlabel',
    'aclImdb/train/unsup/9_0.txt': b'no label, either',
}
TEXTS = {
    'imdb_pos_train.txt': 'after ten\nbefore eleven\nunderscore sorts last\n',
    'imdb_neg_train.txt': 'The last training review\nnine\n',
    'imdb_pos_dev.txt': 'Voilà dev 7½\n',
    'imdb_neg_dev.txt': 'The first dev review\n',
    'imdb_pos_test.txt': 'A good film br Really\n',
    'imdb_neg_test.txt': 'A bad film\n',
    'imdb_unlabled.txt': 'no label\nno label either\n',
}


def member(name, content=b'', **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def make_tar(members=MEMBERS, extra=()):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as tar:
        for info, content in [member(*item) for item in members.items()] + list(extra):
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def make_archive(path, *args, **kwargs):
    path.write_bytes(gzip.compress(make_tar(*args, **kwargs), 1))
    return path


def texts(folder):
    return {path.name: path.read_text(encoding='utf-8') for path in folder.iterdir()}


@pytest.mark.parametrize('prefix', ['', './'])
def test_archive(tmp_path, prefix):
    archive = make_archive(
        tmp_path / 'a.tar.gz', {prefix + name: MEMBERS[name] for name in reversed(MEMBERS)},
        extra=[member(prefix + 'aclImdb/train', type=tarfile.DIRTYPE)])
    counts = imdb.prepare(tmp_path / 'data', archive)
    assert texts(tmp_path / 'data') == TEXTS
    assert counts == {name: text.count('\n') for name, text in TEXTS.items()}


@pytest.mark.parametrize('below', ['', 'aclImdb'])
def test_folder(tmp_path, below):
    for name, content in MEMBERS.items():
        path = tmp_path / 'x' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    imdb.prepare(tmp_path / 'data', tmp_path / 'x' / below)
    assert texts(tmp_path / 'data') == TEXTS


@pytest.mark.parametrize('kind', ['pipe', '/etc/passwd', '/dev/zero'])
def test_a_review_that_is_no_file(tmp_path, kind):
    """Neither read, which would hang or leak, nor left out, which would change the corpus."""
    for name, content in MEMBERS.items():
        path = tmp_path / 'x' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    path.unlink()
    os.mkfifo(path) if kind == 'pipe' else path.symlink_to(kind)
    with pytest.raises(UserError, match=re.escape(path.name)):
        imdb.prepare(tmp_path / 'data', tmp_path / 'x')
    assert not (tmp_path / 'data').exists()


def test_folder_without_a_split(tmp_path):
    (tmp_path / 'aclImdb' / 'train' / 'pos').mkdir(parents=True)
    with pytest.raises(UserError, match='cannot read .*give the folder aclImdb'):
        imdb.prepare(tmp_path / 'data', tmp_path / 'aclImdb')
    assert os.listdir(tmp_path) == ['aclImdb']


def refuses(tmp_path, capsys, content):
    """`prepare` on an archive of these bytes: one line, status 2, nothing written, earlier files
    intact. Returns the line."""
    archive = tmp_path / 'bad.tar.gz'
    archive.write_bytes(content)
    earlier = tmp_path / 'earlier'
    imdb.prepare(earlier, make_archive(tmp_path / 'good.tar.gz'))
    messages = []
    for folder in (tmp_path / 'new' / 'folder', earlier):
        with pytest.raises(SystemExit) as info:
            cli.run(main, ['prepare', '--dataset', 'imdb', '--data_dir', str(folder),
                           '--archive', str(archive)])
        assert info.value.code == 2
        err = capsys.readouterr().err
        assert err.startswith('error: ')
        assert err.count('\n') == 1
        messages.append(err)
    assert messages[0] == messages[1]
    assert not (tmp_path / 'new').exists()
    assert texts(earlier) == TEXTS
    return messages[0]


def compressed(*args, **kwargs):
    return gzip.compress(make_tar(*args, **kwargs), 1)


def without(part):
    return {name: content for name, content in MEMBERS.items() if part not in name}


def cut_tar(keep):
    """An intact gzip file whose tar is cut short."""
    return gzip.compress(make_tar()[:keep], 1)


def broken_header():
    tar = bytearray(make_tar(extra=[member(f'aclImdb/train/unsup/{i}_0.txt', b'more text')
                                    for i in range(100, 200)]))
    tar[8 * 1024 + 1] ^= 0xff
    return gzip.compress(bytes(tar), 1)


def huge(name, size=2**63 - 1):
    """A small archive whose other member claims to be endless."""
    info = tarfile.TarInfo(name)
    info.size = size
    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024), 1)


def with_attribute(name, value):
    """An archive with a file that has an attribute of pax's."""
    return compressed(extra=[member('aclImdb/other', b'x', pax_headers={name: value})])


WRONG_ARCHIVES = {
    'empty': (b'', 'empty file'),
    'text': (b'not an archive', 'damaged or not'),
    'html': (b'<html>404</html>' * 100, 'damaged or not'),
    'gzip of text': (gzip.compress(b'no tar in here' * 100), 'damaged or not'),
    'plain tar': (make_tar(), 'damaged or not'),
    'zip': (b'PK\x03\x04' + bytes(100), 'damaged or not'),
    'truncated gzip': (compressed()[:-20], 'cut short'),
    'half a gzip': (compressed()[:len(compressed()) // 2], 'cut short'),
    'gzip header': (compressed()[:10], 'cut short'),
    'wrong checksum': (compressed()[:-8] + bytes(8), 'damaged or not'),
    'garbage after': (compressed() + b'garbage', 'damaged or not'),
    'damaged deflate': (compressed()[:60] + bytes(20) + compressed()[80:], 'damaged or not'),
    'tar cut in a file': (cut_tar(3 * 1024 + 512 + 5), 'damaged or not'),
    'tar cut after a file': (cut_tar(9 * 1024), 'damaged or not'),
    'tar cut before its end': (cut_tar(len(MEMBERS) * 1024), 'its end is missing'),
    'damaged header': (broken_header(), 'its end is missing'),
    'no train/pos': (compressed(without('train/pos')), 'no review for imdb_pos_train.txt'),
    'no dev': (compressed(without('10625_')), 'no review for imdb_neg_dev.txt'),
    'no test/neg': (compressed(without('test/neg')), 'no review for imdb_neg_test.txt'),
    'no unsup': (compressed(without('unsup')), 'no review for imdb_unlabled.txt'),
    'other folder': (compressed({name.replace('aclImdb', 'other'): content
                                 for name, content in MEMBERS.items()}), 'no review for'),
    'empty review': (compressed({**MEMBERS, 'aclImdb/train/pos/7_7.txt': b''}),
                     'train/pos/7_7.txt is an empty review'),
    'review of signs': (compressed({**MEMBERS, 'aclImdb/train/pos/7_7.txt': b' ...\n!'}),
                        'train/pos/7_7.txt is an empty review'),
    'not UTF-8': (compressed({**MEMBERS, 'aclImdb/train/pos/7_7.txt': b'caf\xe9'}),
                  'train/pos/7_7.txt is not UTF-8'),
    'twice': (compressed(extra=[member('aclImdb/train/pos/10_9.txt', b'again')]),
              'holds train/pos/10_9.txt twice'),
    'parent': (compressed(extra=[member('aclImdb/../../x_1.txt', b'out')]),
               'outside its folder'),
    'absolute': (compressed(extra=[member('/etc/x', b'out')]), 'outside its folder'),
    'symbolic link': (compressed(extra=[member('aclImdb/train/pos/7_7.txt', type=tarfile.SYMTYPE,
                                               linkname='/etc/passwd')]), 'neither a plain file'),
    'hard link': (compressed(extra=[member('aclImdb/x', type=tarfile.LNKTYPE,
                                           linkname='aclImdb/README')]), 'neither a plain file'),
    'device': (compressed(extra=[member('aclImdb/x', type=tarfile.CHRTYPE)]),
               'neither a plain file'),
    'pipe': (compressed(extra=[member('aclImdb/x', type=tarfile.FIFOTYPE)]),
             'neither a plain file'),
    'endless other file': (huge('aclImdb/README'), 'unpacks to more than'),
    'endless review': (huge('aclImdb/train/pos/7_7.txt'), 'bytes'),
    'negative size': (huge('aclImdb/README', -1), 'unpacks to more than'),
    'size by attribute': (with_attribute('size', '99999999999999999999'), 'apart from'),
    'size of a million digits': (with_attribute('size', '9' * 1_000_000), 'apart from'),
    'holes': (with_attribute('GNU.sparse.map', 'abc'), 'apart from'),
    'numbers that are none': (gzip.compress(b'name' + b'z' * 508 + bytes(1024)), 'damaged or not'),
    'long review': (compressed(extra=[member('aclImdb/train/pos/7_7.txt',
                                             b'x ' * imdb.MAX_REVIEW_BYTES)]), 'bytes'),
}


@pytest.mark.parametrize('kind', WRONG_ARCHIVES)
def test_wrong_archive(tmp_path, capsys, kind):
    content, message = WRONG_ARCHIVES[kind]
    assert message in refuses(tmp_path, capsys, content)


def test_a_pipe_is_no_archive(tmp_path):
    """Opening one would wait for somebody who writes into it."""
    os.mkfifo(tmp_path / 'x.tar.gz')
    with pytest.raises(UserError, match='it is .*pipe.*; give aclImdb_v1.tar.gz'):
        imdb.prepare(tmp_path / 'data', tmp_path / 'x.tar.gz')


def test_absent_archive(tmp_path):
    with pytest.raises(UserError, match='cannot read .*no such file'):
        imdb.prepare(tmp_path / 'data', tmp_path / 'absent.tar.gz')
    assert os.listdir(tmp_path) == []


def test_too_many_members(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(imdb, 'MAX_MEMBERS', len(MEMBERS))
    imdb.prepare(tmp_path / 'data', make_archive(tmp_path / 'a.tar.gz'))
    content = compressed(extra=[member('aclImdb/one_more')])
    assert 'has more than' in refuses(tmp_path, capsys, content)


@pytest.mark.parametrize('name', ['aclImdb/bomb', 'aclImdb/' + 'long_name/' * 200_000])
def test_too_much_to_unpack(tmp_path, capsys, monkeypatch, name):
    """The limit holds for members that are passed over, and for the headers themselves."""
    monkeypatch.setattr(imdb, 'MAX_BYTES', 1_500_000)
    content = compressed(extra=[member(name, bytes(2_000_000))])
    assert len(content) < 50_000
    assert 'unpacks to more than' in refuses(tmp_path, capsys, content)


@pytest.mark.parametrize('kind', [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_long_names_and_attributes_take_no_memory(tmp_path, kind):
    """They are passed over, up to the limit of the whole archive."""
    info = tarfile.TarInfo('long')
    info.type, info.size = kind, 100_000_000
    header = info.tobuf(tarfile.GNU_FORMAT)
    path = tmp_path / 'a.tar.gz'
    with gzip.open(path, 'wb', 1) as stream:
        stream.write(header)
        for _ in range(100):
            stream.write(b'n' * 1_000_000)
        stream.write(bytes(-info.size % 512) + make_tar())
    tracemalloc.start()
    try:
        imdb.prepare(tmp_path / 'data', path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert texts(tmp_path / 'data') == TEXTS


# Download


@contextlib.contextmanager
def server(content, ranges=True, stop_after=None, status=None):
    """Serves `content` on a local port; yields its address and a list of the requested ranges."""
    requested = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802  (the name http.server asks for)
            wanted = self.headers['Range']
            requested.append(wanted)
            if status:
                self.send_error(status)
                return
            start = int(wanted.removeprefix('bytes=').rstrip('-')) if wanted and ranges else 0
            self.send_response(206 if start else 200)
            self.send_header('Content-Length', str(len(content) - start))
            self.end_headers()
            end = len(content) if stop_after is None else start + stop_after
            self.wfile.write(content[start:end])

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{running.server_port}/file.tar.gz', requested
        running.shutdown()
        thread.join()


CONTENT = bytes(range(256)) * 1000
EXPECTED = {'size': len(CONTENT), 'md5': hashlib.md5(CONTENT).hexdigest()}


def test_download(tmp_path, capsys):
    with server(CONTENT) as (url, requested):
        for _ in range(2):
            path = imdb.download(tmp_path / 'a', url, **EXPECTED)
            assert os.listdir(tmp_path / 'a') == ['file.tar.gz']
            assert (tmp_path / 'a' / 'file.tar.gz').read_bytes() == CONTENT
            assert path == str(tmp_path / 'a' / 'file.tar.gz')
    assert requested == [None]  # the second time it was there
    assert '100% of 0 MB' in capsys.readouterr().err


def test_download_continues(tmp_path):
    with server(CONTENT, stop_after=100_000) as (url, requested):
        for done in (100_000, 200_000):
            with pytest.raises(UserError, match='broke off .*again to continue'):
                imdb.download(tmp_path, url, **EXPECTED)
            assert (tmp_path / 'file.tar.gz.part').stat().st_size == done
        imdb.download(tmp_path, url, **EXPECTED)
    assert requested == [None, 'bytes=100000-', 'bytes=200000-']
    assert os.listdir(tmp_path) == ['file.tar.gz']
    assert (tmp_path / 'file.tar.gz').read_bytes() == CONTENT


def test_a_complete_part_needs_no_server(tmp_path):
    (tmp_path / 'file.tar.gz.part').write_bytes(CONTENT)
    imdb.download(tmp_path, 'http://127.0.0.1:9/file.tar.gz', **EXPECTED)
    assert os.listdir(tmp_path) == ['file.tar.gz']


def test_download_from_a_server_that_cannot_continue(tmp_path):
    (tmp_path / 'file.tar.gz.part').write_bytes(b'x' * 70_000)
    with server(CONTENT, ranges=False) as (url, _):
        imdb.download(tmp_path, url, **EXPECTED)
    assert (tmp_path / 'file.tar.gz').read_bytes() == CONTENT


@pytest.mark.parametrize('content', [CONTENT[:-1] + b'x', CONTENT + b'x', CONTENT * 2])
def test_download_of_something_else(tmp_path, content):
    with server(content) as (url, _):
        with pytest.raises(UserError, match='not the dataset'):
            imdb.download(tmp_path, url, **EXPECTED)
    assert os.listdir(tmp_path) == []


def test_a_damaged_part_is_thrown_away(tmp_path):
    (tmp_path / 'file.tar.gz.part').write_bytes(b'x' * 100)
    with server(CONTENT) as (url, _):
        with pytest.raises(UserError, match='not the dataset'):
            imdb.download(tmp_path, url, **EXPECTED)
        imdb.download(tmp_path, url, **EXPECTED)
    assert (tmp_path / 'file.tar.gz').read_bytes() == CONTENT


def test_a_damaged_archive_is_fetched_again(tmp_path):
    (tmp_path / 'file.tar.gz').write_bytes(b'x' * len(CONTENT))
    with server(CONTENT) as (url, _):
        imdb.download(tmp_path, url, **EXPECTED)
    assert (tmp_path / 'file.tar.gz').read_bytes() == CONTENT


def test_download_errors(tmp_path):
    with server(CONTENT, status=404) as (url, _):
        with pytest.raises(UserError, match='answers 404'):
            imdb.download(tmp_path / 'a', url, **EXPECTED)
    with pytest.raises(UserError, match='broke off'):  # the server is gone
        imdb.download(tmp_path / 'a', url, **EXPECTED)
    assert os.listdir(tmp_path) == []


def test_download_without_room(tmp_path):
    (tmp_path / 'file.tar.gz.part').mkdir()
    with server(CONTENT) as (url, _):
        with pytest.raises(UserError, match='cannot write .*part: Is a directory'):
            imdb.download(tmp_path, url, **EXPECTED)


def test_progress_bar_on_a_terminal(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, 'stderr', stream)
    progress = imdb._Progress(2_000_000, 0)
    for done in (500_000, 500_001, 2_000_000):
        progress.show(done)
    progress.close()
    assert stream.getvalue() == (
        f'[{"#" * 10}{" " * 30}]   25% of 2 MB\r[{"#" * 40}]  100% of 2 MB\r\n')


def test_progress_elsewhere_is_a_line_per_tenth(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, 'stderr', stream)
    progress = imdb._Progress(2_000_000, 1_000_000)
    for done in (1_100_000, 1_200_000, 1_300_000, 1_399_999, 2_000_000):
        progress.show(done)
    progress.close()
    assert stream.getvalue().split('\n') == [
        '  60% of 2 MB', ' 100% of 2 MB', '']


def test_download_by_command(tmp_path, monkeypatch, capsys):
    """The command fetches into the data folder and prepares from there."""
    archive = compressed()
    with server(archive) as (url, _):
        defaults = url, len(archive), hashlib.md5(archive).hexdigest()
        monkeypatch.setattr(imdb.download, '__defaults__', defaults)
        main(['prepare', '--dataset', 'imdb', '--data_dir', str(tmp_path), '--download'])
    (tmp_path / 'file.tar.gz').unlink()
    assert texts(tmp_path) == TEXTS
    assert 'imdb_pos_train.txt: 3 reviews' in capsys.readouterr().out


def test_the_official_address_is_https(shared):
    official = json.loads((shared / 'golden' / 'imdb.json').read_text())['official_archive']
    assert imdb.ARCHIVE_URL.startswith('https://')
    assert (imdb.ARCHIVE_NAME, imdb.ARCHIVE_URL, imdb.ARCHIVE_BYTES, imdb.ARCHIVE_MD5) == (
        official['name'], official['url'], official['bytes'], official['md5'])


# The real dataset. Times are of the processor, which on an idle machine are those of the clock:
# preparing and loading use one thread. Tests that run beside these must not fail them.


@pytest.mark.slow
def test_real_imdb(shared, root, tmp_path):
    golden = json.loads((shared / 'golden' / 'imdb.json').read_text())
    process = subprocess.Popen(
        [sys.executable, '-m', 'interpretable_adv.data', 'prepare', '--dataset', 'imdb',
         '--data_dir', tmp_path, '--archive', shared / golden['archive']['file']],
        cwd=root, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    assert 'imdb_unlabled.txt: 50,000 reviews' in output
    assert usage.ru_utime + usage.ru_stime < 60
    assert usage.ru_maxrss < 1.5 * 1024 ** 2  # kB
    print(f'prepare: {usage.ru_utime + usage.ru_stime:.1f} s, {usage.ru_maxrss / 1024:.0f} MB')
    assert {path.name: hashlib.md5(path.read_bytes()).hexdigest()
            for path in tmp_path.iterdir()} == golden['preprocessed_md5']

    for limit in (30, 2):  # the second time from the cache
        start = time.process_time()
        corpus = data.load(tmp_path)
        seconds = time.process_time() - start
        print(f'load: {seconds:.1f} s')
        assert seconds < limit
        result = data.statistics(corpus)
        assert result == {name: golden[name] for name in result}
    assert len(result) == 8
