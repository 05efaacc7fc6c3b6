"""The page in a real browser: what people do with it, and that it shows the model's numbers and no others."""

from __future__ import annotations

import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.cli.main import run as run_command
from dragoman.explain.api import explain_json
from dragoman.explain.heads import heads_of, parse_heads, without_heads
from dragoman.explain.page import page_html
from dragoman.translator import Translator

pytestmark = pytest.mark.slow
TEXT = "bade kiki lomu"


def typed(tab: Any, address: str, text: str = TEXT) -> Any:
    """The page with a text in it and everything shown."""
    tab.goto(address)
    tab.locator("#from option").first.wait_for(state="attached")
    tab.fill("#source", text)
    until(tab, f"page.data && page.data.source === {json.dumps(text)}")
    tab.locator("#output.waiting").wait_for(state="detached")
    return tab


def until(tab: Any, condition: str) -> None:
    """Waits for a condition. Playwright's own way needs eval, which the page's policy forbids."""
    for _ in range(600):
        if tab.evaluate(f"Boolean({condition})"):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"{condition} did not come true: {tab.evaluate('page.data?.off_heads')}")


def looked(tab: Any) -> Any:
    """What the page shows, as data."""
    return tab.evaluate("({data: page.data, view: page.view, shown: shown(page.data, page.view)})")


def check_same(found: Any, told: Any) -> None:
    """What a page shows is what the model does: a server with other threads adds up in another order, no more."""
    for kind in ("encoder", "decoder", "cross"):
        for name in ("attention", "rollout"):
            check_close(found[name][kind], told[name][kind])
    assert found["token_log_probs"] == pytest.approx(told["token_log_probs"], abs=1e-5)
    words = ("source", "target", "off_heads", "alignment", "src_tokens", "tgt_tokens", "src_words", "tgt_words")
    assert {name: found[name] for name in words} == {name: told[name] for name in words}


def check_close(found: Any, told: Any) -> None:
    assert np.shape(found) == np.shape(told)
    assert np.abs(np.array(found) - np.array(told)).max() < 1e-6


def test_translates_as_one_types_with_scores_and_alternatives(
    tab: Any, served_page: str, translator: Translator
) -> None:
    typed(tab, served_page)
    (best,) = translator.translate([TEXT], nbest=4, token_log_probs=True)
    assert tab.inner_text("#output") == best.text
    assert tab.locator("#others li").all_inner_texts() == [one.text for one in best.alternatives]
    shares = tab.locator("#scores .score").evaluate_all(
        "all => all.map(one => parseFloat(one.style.cssText.split(':')[1]))"
    )
    assert best.token_log_probs is not None
    assert shares == pytest.approx([100 * math.exp(number) for number in best.token_log_probs], abs=0.06)
    tab.fill("#source", "tasu")
    until(tab, f"at('output').textContent === {json.dumps(translator('tasu'))}")
    tab.fill("#source", "")
    until(tab, "at('output').textContent === ''")


def test_copy_and_swap(tab: Any, served_page: str, translator: Translator) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served_page)
    typed(tab, served_page)
    tab.click("#copy")
    tab.locator("#copy", has_text="Copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == translator(TEXT)
    assert (tab.input_value("#from"), tab.input_value("#into")) == ("xa", "xb")
    tab.click("#swap")
    assert tab.input_value("#source") == translator(TEXT)
    assert (tab.input_value("#from"), tab.input_value("#into")) == ("xb", "xa")
    until(tab, f"at('output').textContent === {json.dumps(translator(translator(TEXT)))}")


def test_the_sentence_at_the_caret_is_looked_at(tab: Any, served_page: str) -> None:
    text = f"bade. Lomu kiki.\n{TEXT}"
    tab.goto(served_page)
    tab.fill("#source", text)
    until(tab, f"page.data?.source === {json.dumps(TEXT)}")  # the caret is at the end
    tab.evaluate("at('source').setSelectionRange(8, 8); at('source').click()")
    until(tab, "page.data.source === 'Lomu kiki.'")


def test_hovering_a_token_shows_what_it_looks_at(tab: Any, served_page: str, translator: Translator) -> None:
    typed(tab, served_page)
    told = explain_json(translator, TEXT)
    check_same(looked(tab)["data"], told)
    tab.locator('#lines .token[data-side="row"]').nth(1).hover()
    view = looked(tab)["view"]
    row = told["attention"]["cross"][view["layer"] - 1][view["head"] - 1][1]
    most = max(range(len(row)), key=row.__getitem__)
    label = tab.evaluate(f"label({json.dumps(told['src_tokens'][most])})")
    assert tab.inner_text("#readout").split("looks at: ")[1].startswith(f"{label} ")
    # The cells of the matrix: strength is a function of the weight that never falls.
    cells = tab.locator('#matrix .weight[data-row="1"]').evaluate_all(
        "all => all.map(one => +one.getAttribute('fill-opacity'))"
    )
    assert cells == pytest.approx([weight**0.65 for weight in row], abs=1e-3)
    tab.locator('#matrix .weight[data-row="0"][data-column="1"]').hover()
    assert re.search(r"looks at “.+” with [\d.<]+ %", tab.inner_text("#readout"))
    tab.hover("h1")
    until(tab, "at('readout').textContent.includes('Point at a token')")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_head_can_be_opened_and_words_merged(
    tab: Any, served_page: str, translator: Translator, kind: str
) -> None:
    typed(tab, served_page)
    told = explain_json(translator, TEXT)
    tab.click(f'#kinds [data-kind="{kind}"]')
    rows, columns = {"encoder": ("src", "src"), "decoder": ("tgt", "tgt_in"), "cross": ("tgt", "src")}[kind]
    for layer, heads in enumerate(told["attention"][kind], 1):
        for head, weights in enumerate(heads, 1):
            tab.click(f'[data-head="{kind}.{layer}.{head}"]')
            found = looked(tab)
            check_close(found["shown"]["weights"], weights)
            assert tab.inner_text("#head-title").endswith(f"layer {layer}, head {head}")
            habits = told["heads"][kind][layer - 1][head - 1]
            assert habits["tendency"] in tab.inner_text("#habits")
            entropy = re.search(r"([\d.]+) bits", tab.inner_text("#habits"))
            assert entropy is not None
            assert float(entropy[1]) == pytest.approx(habits["entropy"], abs=0.006)
    tab.check("#words")
    merged = np.zeros((max(told[f"{rows}_words"]) + 1, max(told[f"{columns}_words"]) + 1))
    for r, row_word in enumerate(told[f"{rows}_words"]):
        for c, column_word in enumerate(told[f"{columns}_words"]):
            merged[row_word, column_word] += weights[r][c] / told[f"{rows}_words"].count(row_word)
    words = looked(tab)["shown"]
    check_close(words["weights"], merged)
    assert np.allclose(np.array(words["weights"]).sum(axis=1), 1, atol=1e-5)
    assert words["rows"] == told[f"{rows}_word_texts"]
    tab.uncheck("#words")
    tab.click(f'[data-head="{kind}.all.mean"]')
    check_close(looked(tab)["shown"]["weights"], np.mean(told["attention"][kind], axis=(0, 1)))
    tab.click(f'[data-head="{kind}.all.rollout"]')
    check_close(looked(tab)["shown"]["weights"], told["rollout"][kind][-1])


def changed_text(tab: Any) -> list[str]:
    """The words of the translation without the heads that are off; words that are gone are struck out beside them."""
    kept = "[...at('changed-text').childNodes].filter(one => one.tagName !== 'DEL').map(one => one.textContent)"
    words: list[str] = "".join(tab.evaluate(kept)).split()
    return words


def changing(translator: Translator) -> str:
    """A head without which the translation is another."""
    whole = translator(TEXT)
    heads = [str(head) for head in heads_of(translator.config.model)]
    return next(name for name in heads if explain_json(translator, TEXT, off_heads=[name])["target"] != whole)


def test_a_head_switched_off_changes_the_translation(tab: Any, served_page: str, translator: Translator) -> None:
    name = changing(translator)
    typed(tab, served_page)
    tab.click(f'#kinds [data-kind="{name.split(".")[0]}"]')
    tab.click(f'[data-head="{name}"]')
    tab.click("#switch")
    until(tab, "page.data.off_heads.length === 1")
    expected = without_heads(translator, parse_heads([name], translator.config.model))(TEXT)
    assert changed_text(tab) == expected.split()
    assert tab.inner_text("#tgt-line") == expected != translator(TEXT)
    assert tab.locator("#changed mark, #changed del").count() > 0
    check_same(looked(tab)["data"], explain_json(translator, TEXT, off_heads=[name]))
    assert tab.get_attribute("#switch", "aria-checked") == "false"
    other = next(str(head) for head in heads_of(translator.config.model) if str(head) != name)
    tab.evaluate(f"toggle({json.dumps(other)})")
    until(tab, "page.data.off_heads.length === 2")
    for chip in (name, other):
        tab.click(f'[aria-label="Switch {chip} on again"]')
    until(tab, "page.data.off_heads.length === 0")
    assert tab.inner_text("#tgt-line") == translator(TEXT)
    assert tab.inner_text("#changed") == ""


def test_an_answer_given_up_half_way_is_not_shown(tab: Any, served_page: str, translator: Translator) -> None:
    """A newer question came while the body of an answer was on its way, and the page showed an empty object."""
    typed(tab, served_page)
    names = [str(head) for head in heads_of(translator.config.model)]
    tab.evaluate(
        """([first, second]) => {
        const [fetched, shows] = [window.fetch, window.setData];
        let again = () => toggle(second);
        window.given = [];
        window.setData = (data) => { window.given.push(Object.keys(data).length > 0); shows(data); };
        window.fetch = async (...asked) => {
            const answer = await fetched(...asked), read = answer.json.bind(answer);
            answer.json = async () => { again?.(); again = null; return read(); };
            return answer;
        };
        toggle(first);
        }""",
        names[:2],
    )
    until(tab, "page.data.off_heads?.length === 2")
    assert all(tab.evaluate("window.given"))
    check_same(looked(tab)["data"], explain_json(translator, TEXT, off_heads=names[:2]))


def test_stepping_through_the_decoding(tab: Any, served_page: str, translator: Translator) -> None:
    typed(tab, served_page)
    told = explain_json(translator, TEXT)
    for t, rows in enumerate(told["steps"][: len(told["tgt_tokens"])]):
        assert f"token {t + 1} of {len(told['tgt_tokens'])}" in tab.inner_text("#step-text")
        assert tab.locator("#beam .hyp").count() == len(rows)
        first = tab.locator("#beam .hyp").first.locator("tr")
        fates = [text.split()[-1] for text in first.all_inner_texts()]
        assert fates == [one["fate"] for one in rows[0]["candidates"]]
        assert tab.locator("#beam tr.best").count() == 1
        if t:
            assert tab.evaluate("page.focus") == {"side": "row", "index": t}  # the explorer shows the same step
        if t + 1 < len(told["tgt_tokens"]):
            tab.click("#forth")
    assert tab.is_disabled("#forth")
    tab.click("#back")
    assert "token " + str(len(told["tgt_tokens"]) - 1) in tab.inner_text("#step-text")


def test_a_file_is_uploaded_and_its_translation_saved(
    tab: Any, served_page: str, translator: Translator, tmp_path: Path
) -> None:
    lines = ["bade kiki", "tasu"]
    file = tmp_path / "text.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tab.goto(served_page)
    tab.locator("#into option").first.wait_for(state="attached")
    tab.select_option("#into", "xb")
    tab.set_input_files("#file", file)
    with tab.expect_download() as download:
        tab.click("#file-state a")
    assert Path(download.value.path()).read_text(encoding="utf-8").splitlines() == [translator(line) for line in lines]


def saved(tab: Any, kind: str) -> tuple[str, bytes]:
    with tab.expect_download() as download:
        tab.click(f'[data-export="{kind}"]')
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_what_is_on_screen_is_saved(tab: Any, served_page: str, translator: Translator) -> None:
    from matplotlib.image import imread

    typed(tab, served_page)
    tab.click('[data-head="cross.1.2"]')
    told = explain_json(translator, TEXT)
    name, content = saved(tab, "json")
    assert name == "dragoman-cross.1.2.json"
    check_close(json.loads(content)["weights"], told["attention"]["cross"][0][1])
    name, content = saved(tab, "svg")
    drawn = ElementTree.fromstring(content)
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "Cross-attention, layer 1, head 2" in texts
    assert b"var(" not in content  # every colour is written out
    n_weights = len(told["tgt_tokens"]) * len(told["src_tokens"])
    cells = [one for one in drawn.iter("{http://www.w3.org/2000/svg}rect") if one.get("class") == "weight"]
    assert len(cells) == n_weights
    name, content = saved(tab, "png")
    assert name == "dragoman-cross.1.2.png"
    pixels = imread(io.BytesIO(content))
    assert pixels.shape[:2] == (2 * int(drawn.get("height", 0)), 2 * int(drawn.get("width", 0)))
    assert pixels[..., :3].std() > 0.02  # something is drawn


def test_the_keyboard_is_enough(tab: Any, served_page: str, translator: Translator) -> None:
    """Type, open a head, switch it off and on, walk over tokens, step through the decoding: without a mouse."""
    name = changing(translator)
    kind, layer, head = name.split(".")
    tab.goto(served_page)
    tab.locator("#from option").first.wait_for(state="attached")
    until(tab, "document.activeElement.id === 'source'")
    tab.keyboard.type(TEXT)
    until(tab, f"page.data?.source === {json.dumps(TEXT)}")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            tab.keyboard.press("Tab")
            if tab.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                assert (
                    tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                    or "token" in selector
                )
                return
        raise AssertionError(f"{selector} is not reached")

    tab_to("#kinds button")
    for _ in range(3):
        if looked(tab)["view"]["kind"] != kind:
            tab.keyboard.press("ArrowRight")
    assert looked(tab)["view"]["kind"] == kind
    tab_to("#grid button")
    for _ in range(9):
        tab.keyboard.press("ArrowUp")
        tab.keyboard.press("ArrowLeft")
    for _ in range(int(layer) - 1):
        tab.keyboard.press("ArrowDown")
    for _ in range(int(head) - 1):
        tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert tab.evaluate("nameOf(page.view)") == name
    tab.keyboard.press("o")
    until(tab, "page.data.off_heads.length === 1")
    assert tab.inner_text("#tgt-line") != translator(TEXT)
    tab_to("#switch")
    tab.keyboard.press("Space")
    until(tab, "page.data.off_heads.length === 0")
    tab_to("#lines .token")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("page.focus") == {"side": "row", "index": 1}
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("page.focus.side") == "column"
    assert "is looked at by" in tab.inner_text("#readout")
    tab_to("#step")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#step-text").startswith("token 2 of")


def test_everything_has_a_name_for_a_screen_reader(tab: Any, served_page: str) -> None:
    typed(tab, served_page)
    nameless = tab.evaluate(
        """() => [...document.querySelectorAll('button, select, textarea, input, [role], .token')]
        .filter(one => one.offsetParent !== null || one.ownerSVGElement)
        .filter(one => !['alert', 'status'].includes(one.getAttribute('role')))
        .filter(one => !(one.getAttribute('aria-label') || one.labels?.length || one.textContent.trim()))
        .map(one => one.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    assert tab.locator('[aria-live="polite"]').count() >= 4
    levels = tab.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_shows_everything_in_both_colours(open_tab: Any, served_page: str, scheme: Any) -> None:
    with open_tab(viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True) as tab:
        typed(tab, served_page, "bade kiki lomu tasu nana pode")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        for selector in ("#output", "#grid", "#lines svg", "#matrix svg", "#switch", "#beam .hyp", "[data-export=png]"):
            box = tab.locator(selector).first.bounding_box()
            assert box["x"] >= 0
            assert box["width"] > 20
            assert box["x"] + box["width"] <= 361 or selector == "#matrix svg"  # which scrolls inside its own box
        tab.locator('#lines .token[data-side="row"]').nth(1).tap()
        assert "looks at" in tab.inner_text("#readout")
        tab.locator("#switch").tap()
        until(tab, "page.data.off_heads.length === 1")
        assert contrast(tab, "--ink", "--card") > 7
        for name in ("--muted", "--encoder", "--decoder", "--cross", "--bad"):
            assert contrast(tab, name, "--card") >= 4.5, name


def contrast(tab: Any, one: str, other: str) -> float:
    """The ratio of luminances that the guidelines for accessible pages (WCAG) speak of."""

    def luminance(name: str) -> float:
        text = tab.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
        parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_chosen(tab: Any, served_page: str) -> None:
    typed(tab, served_page)
    before = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.select_option("#theme", "dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != before
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_what_the_server_refuses_is_said(browser: Any, served_page: str) -> None:
    tab = browser.new_page()
    tab.goto(served_page)
    tab.locator("#from option").first.wait_for(state="attached")
    tab.fill("#source", "bade " * 150)
    tab.locator("#problem:visible").wait_for()
    assert "at most 100" in tab.inner_text("#problem")
    tab.close()


def test_the_file_needs_no_server(tab: Any, run: Path, translator: Translator, tmp_path: Path) -> None:
    name, output = changing(translator), tmp_path / "page.html"
    kind, layer, head = name.split(".")
    view = ["--kind", kind, "--layer", layer, "--head", head]
    assert run_command(["attention", "--model", str(run), TEXT, *view, "--output", str(output)]) == 0
    addresses = set(re.findall(r"https?://[\w./-]+", output.read_text(encoding="utf-8")))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody asks for
    seen: list[str] = []
    tab.on("request", lambda request: seen.append(request.url))
    tab.goto(output.as_uri())
    assert tab.inner_text("#tgt-line") == translator(TEXT)
    assert tab.evaluate("nameOf(page.view)") == name
    assert tab.is_hidden("#translate")
    tab.click("#switch")
    expected = without_heads(translator, parse_heads([name], translator.config.model))(TEXT)
    assert changed_text(tab) == expected.split()
    other = next(str(one) for one in heads_of(translator.config.model) if str(one) != name)
    tab.evaluate(f"toggle({json.dumps(other)})")
    assert "dragoman serve" in tab.inner_text("#changed")
    assert saved(tab, "png")[1].startswith(b"\x89PNG")
    assert [url for url in seen if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_text_is_never_taken_for_the_page(tab: Any, translator: Translator, tmp_path: Path) -> None:
    text = "<img src=x onerror=alert(1)> {{script}} </script><script>document.title='gone'</script> &amp; \" '"
    data = explain_json(translator, text, "<b>bold</b> </textarea>")
    page = tmp_path / "page.html"
    page.write_text(page_html(data, name="<i>name</i>"), encoding="utf-8")
    tab.goto(page.as_uri())
    assert tab.inner_text("#src-line") == text
    assert tab.inner_text("#tgt-line") == "<b>bold</b> </textarea>"
    assert tab.title() == f"Dragoman: {text}"
    assert tab.locator("main img, main b img").count() == 0
    assert tab.inner_text("#model-line").startswith("<i>name</i>")
    assert "given" in tab.inner_text("#decoding-note")
    ElementTree.fromstring(saved(tab, "svg")[1])
