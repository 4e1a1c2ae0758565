import json
import re

import pytest

from interpretable_adv.evaluation import records, report

HOSTILE = ['</script><script>alert(1)</script>', '<b>&"', '<img src=x onerror=alert(1)>', '<!--',
           'مرحبا', '😀', '日本語', "o'clock", '\u2028', '@@DATA@@', '<eos>']
WORD = '.word[data-panel="{}"][data-position="{}"]'
CARD = 'document.getElementById("card")'


@pytest.fixture(scope='module')
def page(tmp_path_factory, make_review):
    perplexity = {'clean': 100.0, 'continuous': 104.5, 'nearest': 103.0, 'direction': 900.0}
    reviews = [make_review(3, words=30, perplexity=perplexity, probability=0.9,
                           probability_adv=0.25),
               make_review(17, words=1, methods=('adv', 'spgd'), prediction_adv=1),
               make_review(5, words=HOSTILE, label=0)]
    path = tmp_path_factory.mktemp('report') / 'report.html'
    report.write(path, reviews)
    return path, reviews


def embedded(path):
    text = path.read_text(encoding='utf-8')
    return json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', text,
                                re.DOTALL)[1])


# What is in the file ----------------------------------------------------------------------------

def test_data_hold_every_field_of_every_word(page):
    path, reviews = page
    data = embedded(path)
    word = data['words']
    for shown, review in zip(data['reviews'], reviews):
        assert shown['index'] == review[0]['index']
        assert [word[i] for i in shown['words']] == [w['word'] for w in review[0]['words']]
        for attack, record in zip(shown['attacks'], review):
            assert data['methods'][attack['method']] == records.method_name(record)
            for position, entry in enumerate(record['words']):
                assert word[attack['toward'][position]] == entry['toward']
                assert word[attack['nearest'][position]] == entry['nearest']
                assert attack['norm'][position] == pytest.approx(entry['norm'], rel=1e-4)
                assert [word[i] for i in attack['neighbors'][position]] == entry['neighbors']
                assert attack['cosines'][position] == pytest.approx(
                    [1000 * cosine for cosine in entry['cosines']], abs=0.51)


def test_text_cannot_leave_its_script_element(page):
    text = page[0].read_text(encoding='utf-8')
    assert text.count('</script>') == 2 and text.count('<script') == 2
    assert '<img' not in text and '\u2028' not in text


def test_nothing_in_the_file_points_elsewhere(page):
    text = report.TEMPLATE.read_text(encoding='utf-8')
    assert not re.search(r'https?:|src=|@import|url\(|fetch\(|XMLHttpRequest', text)
    assert re.findall(r'href="([^"]*)"', text) == ['data:,']


def test_same_records_same_file(tmp_path, page):
    report.write(tmp_path / 'again.html', page[1])
    assert (tmp_path / 'again.html').read_bytes() == page[0].read_bytes()


def test_bare_records_make_a_report(tmp_path, browser):
    words = [{'word': 'good', 'toward': 'bad', 'nearest': 'good', 'norm': 0.5},
             {'word': '<eos>', 'toward': '<eos>', 'nearest': '<eos>', 'norm': 0}]
    record = {'index': 0, 'method': 'spgd', 'label': 2, 'prediction': 2, 'prediction_adv': 0,
              'words': words}
    report.write(tmp_path / 'r.html', [[record]])
    browser.open(tmp_path / 'r.html')
    browser.click(WORD.format(0, 0))
    assert 'bad' in browser.run(f'{CARD}.innerText')
    assert 'class 2 → class 0' in browser.run('document.querySelector(".prediction").innerText')
    assert browser.complaints() == []


# What a browser shows ---------------------------------------------------------------------------

def texts(browser, panel):
    return browser.run(f'[...document.querySelectorAll(".word[data-panel=\\"{panel}\\"]")]'
                       '.map((e) => e.textContent)')


def test_renders_without_complaint_and_asks_for_nothing(page, browser):
    path, reviews = page
    browser.open(path)
    for panel, record in enumerate(reviews[0]):
        assert texts(browser, panel) == [word['word'] for word in record['words']]
    headings = browser.run('[...document.querySelectorAll("article h3")].map((e) => e.textContent)')
    assert headings == ['AdvT-Text', 'iAdvT-Text', 'SPGD']
    for selector in ('#next', '#theme', WORD.format(0, 0), '#only'):
        browser.click(selector)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


def test_the_checks_notice_errors_and_requests(tmp_path, browser):
    path = tmp_path / 'bad.html'
    path.write_text('<script src="absent.js"></script>'
                    '<script>console.error(1); undefined.x</script>')
    browser.open(path)
    assert len(browser.complaints()) >= 2
    assert (tmp_path / 'absent.js').as_uri() in browser.requests()


def test_hostile_words_are_text(page, browser):
    browser.open(page[0], fragment='#review=5')
    assert texts(browser, 0) == HOSTILE
    assert browser.run('document.querySelectorAll("img, b:not(.track b)").length') == 0
    for position in range(len(HOSTILE)):
        browser.click(WORD.format(0, position))
        heading = browser.run(f'{CARD}.querySelector("h3").textContent')
        assert heading == HOSTILE[position]
    assert browser.complaints() == []


def test_readings_replace_words_and_perplexities(page, browser):
    path, (review, *_) = page
    browser.open(path)
    for reading, key, value in (('nearest', 'nearest', '103.0 (+3.0)'),
                                ('direction', 'toward', '900.0 (+800.0)'),
                                ('continuous', 'word', '104.5 (+4.5)')):
        browser.click(f'input[value={reading}]')
        for panel, record in enumerate(review):
            assert texts(browser, panel) == [word[key] for word in record['words']]
            changed = browser.run('[...document.querySelectorAll(".word.changed'
                                  f'[data-panel=\\"{panel}\\"]")].map((e) => '
                                  'Number(e.dataset.position))')
            assert changed == [position for position, word in enumerate(record['words'])
                               if word[key] != word['word']]
        line = browser.run('document.querySelector(".perplexity").innerText')
        assert line.startswith('Perplexity 100.0 → ' + value)


def test_shades_follow_the_norms_on_one_scale(page, browser):
    path, (review, *_) = page
    browser.open(path)
    alpha = browser.run(
        '[...document.querySelectorAll(".word")].map((e) => {'
        ' const parts = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);'
        ' return parts.length > 3 ? parts[3] : 1; })')
    norms = [word['norm'] for record in review for word in record['words']]
    top = max(norms)
    for shade, norm in zip(alpha, norms):
        assert shade == pytest.approx(0.75 * norm / top, abs=0.01)


def test_card_opens_by_click_and_shows_neighbours_and_cosines(page, browser):
    path, (review, *_) = page
    browser.open(path)
    assert browser.run(f'{CARD}.hidden')
    browser.click(WORD.format(1, 4))
    assert not browser.run(f'{CARD}.hidden')
    word = review[1]['words'][4]
    rows = browser.run(f'[...{CARD}.querySelectorAll("tbody tr")].map((r) => '
                       '[r.cells[0].textContent, r.cells[1].textContent])')
    assert [row[0] for row in rows] == word['neighbors']
    shown = [float(row[1].replace('\u2212', '-')) for row in rows]
    assert shown == pytest.approx(word['cosines'], abs=6e-4)
    assert browser.run(f'{CARD}.querySelector("tr.chosen td").textContent') == word['toward']
    box = browser.run(f'(() => {{ const b = {CARD}.getBoundingClientRect();'
                      ' return [b.left, b.right, b.width, b.height]; })()')
    assert box[0] >= 0 and box[1] <= 1280 and min(box[2:]) > 100
    browser.click('h1')  # elsewhere
    assert browser.run(f'{CARD}.hidden')


def test_card_of_a_word_that_rests(page, browser):
    path, (review, *_) = page
    position = next(i for i, word in enumerate(review[2]['words']) if word['norm'] == 0)
    browser.open(path)
    browser.click(WORD.format(2, position))
    text = browser.run(f'{CARD}.innerText')
    assert 'moved\nno\n' in text and '0.000' not in text.partition('Neighbour')[2]


@pytest.mark.parametrize('height', [420, 600, 1000])
def test_card_stays_in_the_window_and_beside_its_word(tmp_path, browser, make_review, height):
    path = tmp_path / 'r.html'
    report.write(path, [make_review(words=150, neighbors=25)])
    browser.open(path, height=height)
    for position in (0, 70, 149):
        browser.click(WORD.format(1, position))
        card, word = browser.run(
            f'[{CARD}, document.querySelector(".word.open")].map((e) => {{'
            ' const b = e.getBoundingClientRect(); return [b.top, b.bottom, b.left, b.right]; })')
        assert card[0] >= 0 and card[1] <= height and card[2] >= 0 and card[3] <= 1280
        assert card[0] >= word[1] or card[1] <= word[0]
    browser.press('PageDown')
    assert browser.run(f'{CARD}.scrollTop') > 0


def test_card_opens_while_hovering(page, browser):
    browser.open(page[0])
    browser.hover(WORD.format(0, 2))
    assert not browser.run(f'{CARD}.hidden')
    browser.hover('h1')
    assert browser.run(f'{CARD}.hidden')


def test_keyboard_reaches_words_and_card(page, browser):
    path, (review, *_) = page
    browser.open(path)
    focus = 'document.activeElement.dataset.panel + "/" + document.activeElement.dataset.position'
    for _ in range(20):
        browser.press('Tab')
        if browser.run(focus) == '0/0':
            break
    for key, place in (('ArrowRight', '0/1'), ('ArrowRight', '0/2'), ('ArrowDown', '1/2'),
                       ('ArrowLeft', '1/1'), ('End', '1/29'), ('ArrowRight', '1/29'),
                       ('Home', '1/0'), ('ArrowUp', '0/0')):
        browser.press(key)
        assert browser.run(focus) == place
    assert browser.run(f'{CARD}.hidden')
    browser.press('Enter')
    assert not browser.run(f'{CARD}.hidden')
    browser.press('ArrowRight')  # the card goes along
    assert browser.run(f'{CARD}.querySelector("h3").textContent') == review[0]['words'][1]['word']
    browser.press('Escape')
    assert browser.run(f'{CARD}.hidden')
    assert browser.run(focus) == '0/1'
    browser.press('Tab')  # one stop per text
    assert browser.run(focus) == '1/0'


def test_flips_and_navigation(page, browser):
    browser.open(page[0])
    chips = '[...document.querySelectorAll("article .chip")].map((e) => e.textContent)'
    assert browser.run(chips) == ['flipped', 'flipped', 'unchanged']
    assert browser.run('document.querySelector(".prediction").innerText') == (
        'Prediction positive → negative')
    assert browser.run('document.querySelector(".probability").innerText') == (
        'Probability of positive 0.900 → 0.250')
    assert browser.run('document.getElementById("previous").disabled')
    browser.click('#next')
    assert 'Review 17' in browser.run('document.getElementById("title").innerText')
    assert browser.run('location.hash') == '#review=17&reading=continuous'
    browser.click('#only')  # review 17 was not flipped, so another takes its place
    assert browser.run('document.getElementById("review").options.length') == 2
    assert 'Review 3' in browser.run('document.getElementById("title").innerText')
    summary = browser.run('document.getElementById("summary").innerText')
    assert 'AdvT-Text\t3\t2 (66.7%)' in summary


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_light_and_dark(page, browser, scheme):
    background = 'getComputedStyle(document.body).backgroundColor'
    browser.open(page[0], scheme=scheme)
    first = browser.run(background)
    assert (sum(map(int, re.findall(r'\d+', first))) > 380) == (scheme == 'light')
    browser.click('#theme')
    second = browser.run(background)
    assert (sum(map(int, re.findall(r'\d+', second))) > 380) == (scheme == 'dark')
    browser.click('#theme')
    assert browser.run(background) == first


@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('fragment', ['#review=3', '#review=5'], ids=['red', 'blue'])
def test_text_keeps_its_contrast_on_the_strongest_shade(page, browser, scheme, fragment):
    browser.open(page[0], scheme=scheme, fragment=fragment)
    ink, shade, panel = browser.run(
        '(() => { const w = [...document.querySelectorAll(".word")].sort((a, b) =>'
        ' b.style.getPropertyValue("--shade") - a.style.getPropertyValue("--shade"))[0];'
        ' const s = getComputedStyle(w);'
        ' return [s.color, s.backgroundColor, getComputedStyle(w.closest("article"))'
        '.backgroundColor].map((c) => c.match(/[\\d.]+/g).map(Number)); })()')
    alpha = shade[3]
    mixed = [alpha * top + (1 - alpha) * under for top, under in zip(shade, panel)]

    def luminance(color):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                  for c in (value / 255 for value in color[:3])]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(ink), luminance(mixed)])
    assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize('review', [3, 5, 17])
def test_phone(page, browser, review):
    browser.open(page[0], width=390, height=844, mobile=True, fragment=f'#review={review}')
    assert browser.run('document.documentElement.scrollWidth') == 390
    lefts = browser.run('[...document.querySelectorAll("article")].map((e) => '
                        'e.getBoundingClientRect().left)')
    assert len(set(lefts)) == 1  # one below the other
    browser.tap(WORD.format(1, 0))
    assert not browser.run(f'{CARD}.hidden')
    card, word = browser.run(
        f'[{CARD}, document.querySelector(".word.open")].map((e) => {{'
        ' const b = e.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })')
    assert card[0] >= 0 and card[1] <= 390 and abs(card[3] - 844) < 1
    assert word[2] >= 0 and word[3] <= card[2] + 1  # the card leaves the word in sight
    assert browser.complaints() == []


def test_wide_window_shows_methods_side_by_side(page, browser):
    browser.open(page[0])
    tops = browser.run('[...document.querySelectorAll("article")].map((e) => '
                       'e.getBoundingClientRect().top)')
    assert len(tops) == 3 and len(set(tops)) == 1


def test_long_review_is_shown_quickly(tmp_path, browser, make_review):
    report.write(tmp_path / 'long.html', [make_review(words=2500)])
    browser.open(tmp_path / 'long.html')
    assert len(texts(browser, 2)) == 2500
    browser.click(WORD.format(2, 2400))
    assert not browser.run(f'{CARD}.hidden')
    milliseconds = browser.run('(() => { const start = performance.now();'
                               ' document.querySelector("input[value=nearest]").click();'
                               ' return performance.now() - start; })()')
    assert milliseconds < 15000  # measured: 200 to 700 on a busy machine
