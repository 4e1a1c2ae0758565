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
    text = page[0].read_text(encoding='utf-8').replace('http://www.w3.org/2000/svg', '')
    assert not re.search(r'https?:|src="|@import|url\(|fetch\(|XMLHttpRequest', text)
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
        panel = browser.run('(() => { const b = document.querySelector(".word.open").closest('
                            '"article").getBoundingClientRect(); return [b.left, b.right]; })()')
        assert card[2] >= panel[1] or card[3] <= panel[0]  # never over its own panel
        assert card[0] <= word[0] + 1 <= card[1] + 1
    browser.press('PageDown')
    assert (browser.run(f'{CARD}.scrollTop') > 0) == (height < 800)


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
    assert not browser.run(f'{CARD}.hidden')  # a word that is reached shows its card
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
    assert browser.run('document.querySelector("article .meters").getAttribute("aria-label")') == (
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
    assert card[0] >= 0 and card[1] <= 390 and card[3] <= 844 + 1
    assert word[2] >= 0 and word[3] <= card[2] + 1  # in the text, under the word's line
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


def test_a_long_review_leads_to_its_most_moved_words(tmp_path, browser, make_review):
    review = make_review(words=1500, methods=('spgd',))
    for position, word in enumerate(review[0]['words']):
        if position != 1200:
            word['norm'] = 0.0
    report.write(tmp_path / 'long.html', [review, make_review(1, words=20)])
    browser.open(tmp_path / 'long.html')
    assert browser.run('document.querySelectorAll(".strip").length') == 1
    jumps = browser.run('[...document.querySelectorAll(".most button")].map((e) => '
                        '[e.textContent, e.dataset.jump])')
    assert jumps == [[review[0]['words'][1200]['word'], '1200']]
    assert browser.run('document.querySelector(".strip path").getAttribute("d")').count('M') == 1
    browser.click('.most button')
    top = browser.run('document.querySelector(".word.open").getBoundingClientRect().top')
    assert browser.run('document.activeElement.dataset.position') == '1200' and 0 < top < 900
    browser.click('.strip')  # its middle is the middle of the text
    assert abs(int(browser.run('document.activeElement.dataset.position')) - 750) < 5
    browser.click('#next')  # 19 words need no overview
    assert browser.run('document.querySelectorAll(".strip").length') == 0


# Hundreds of reviews ----------------------------------------------------------------------------

@pytest.fixture(scope='module')
def many(tmp_path_factory, make_review):
    """Reviews 0 to 299; 250 is flipped by all, 120 has a word of its own and the largest norm."""
    reviews = []
    for index in range(300):
        gap = 500.0 if index == 77 else 1.0
        review = make_review(index, words=5, prediction_adv=int(index != 250), perplexity={
            'clean': 1234.5, 'continuous': 1234.5 + gap, 'nearest': 1234.46 - gap / 1000})
        if index == 120:
            for record in review:
                record['words'][0].update(word='Zanzibar', norm=9.0)
        reviews.append(review)
    path = tmp_path_factory.mktemp('many') / 'report.html'
    report.write(path, reviews)
    return path


def listed(browser):
    return browser.run('[...document.getElementById("review").options].map((o) => '
                       'Number(o.textContent.split(" ")[1]))')


def choose(browser, identifier, value, event='change'):
    browser.run(f'(() => {{ const e = document.getElementById("{identifier}");'
                f' e.value = "{value}"; e.dispatchEvent(new Event("{event}")); }})()')


def test_search_and_sorting(many, browser):
    browser.open(many)
    assert listed(browser) == list(range(300))
    for order, first in (('flips', 250), ('norm', 120), ('perplexity', 77), ('file', 0)):
        choose(browser, 'sort', order)
        assert listed(browser)[0] == first and sorted(listed(browser)) == list(range(300))
        assert browser.run('document.getElementById("title").innerText').startswith(
            f'Review {first},')
    choose(browser, 'search', 'zanziBAR', 'input')
    assert listed(browser) == [120]
    assert browser.run('document.getElementById("found").textContent') == '1 of 300 reviews'
    choose(browser, 'search', '250', 'input')
    assert listed(browser) == [250]
    choose(browser, 'search', 'nowhere', 'input')
    assert browser.run('document.getElementById("review").innerText') == 'No such review'
    assert browser.run('document.querySelectorAll("article").length') == 0
    choose(browser, 'search', '', 'input')
    browser.click('#only')
    assert listed(browser) == [250]
    assert browser.complaints() == []


def test_numbers_have_separators_and_no_negative_zero(many, browser):
    browser.open(many, fragment='#review=3&reading=nearest')
    line = browser.run('document.querySelector(".perplexity").innerText')
    assert line == 'Perplexity 1,234.5 → 1,234.5 (0.0) read as nearest'
    browser.click('input[value=continuous]')
    line = browser.run('document.querySelector(".perplexity").innerText')
    assert line == 'Perplexity 1,234.5 → 1,235.5 (+1.0) read as continuous'
    numbers = browser.run('[components.number(1234567.891, 2), components.number(-0.0004),'
                          ' components.number(-1234.5, 1), components.signed(-0.04, 1),'
                          ' components.signed(2345, 1)]')
    assert numbers == ['1,234,567.89', '0.000', '−1,234.5', '0.0', '+2,345.0']


def test_the_end_of_a_review_is_no_word(many, browser):
    browser.open(many)
    assert browser.run('document.querySelector(".moved").innerText') == '4 of 4 words moved'
    assert '4 words' in browser.run('document.getElementById("review").options[0].textContent')
    browser.click(WORD.format(0, 4))
    assert 'end of the text, AdvT-Text' in browser.run(f'{CARD}.innerText')


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_perplexities_are_in_sight_at_400_pixels(many, browser, scheme):
    browser.open(many, width=400, height=800, mobile=True, scheme=scheme)
    assert browser.run('document.documentElement.scrollWidth') == 400
    cells = browser.run('[...document.querySelectorAll("#summary td")].map((e) => {'
                        ' const b = e.getBoundingClientRect(); return [b.left, b.right]; })')
    assert len(cells) == 3 * 7 and all(0 <= left < right <= 400 for left, right in cells)


def test_a_zero_gradient_says_so(tmp_path, browser, make_review):
    review = make_review(words=6)
    for word in review[0]['words']:
        word['norm'] = 0.0
    report.write(tmp_path / 'r.html', [review])
    browser.open(tmp_path / 'r.html')
    assert browser.run('document.querySelector(".note").innerText') == (
        'Nothing moves: the gradient of the loss is exactly zero.')
    assert browser.run('document.querySelectorAll(".note").length') == 1
    review[0]['words'][-1]['norm'] = 0.5
    report.write(tmp_path / 'r.html', [review])
    browser.open(tmp_path / 'r.html')
    assert browser.run('document.querySelector(".moved").innerText') == (
        '0 of 5 words moved, only <eos>')


def test_one_colour_scale_per_method(page, browser):
    path, (review, *_) = page
    browser.open(path)
    browser.click('input[value=own]')
    shades = browser.run('[0, 1, 2].map((panel) => Math.max(...[...document.querySelectorAll('
                         '`.word[data-panel="${panel}"]`)].map((e) => '
                         'Number(e.style.getPropertyValue("--shade")))))')
    assert shades == [1, 1, 1]
    top = max(word['norm'] for word in review[2]['words'])
    assert f'largest norm {top:.3f}' in browser.run(
        'document.querySelectorAll(".moved")[2].innerText')
