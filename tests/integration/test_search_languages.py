"""Every word of a text finds it, in any script, on both databases."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.search.finding import find_items
from nexus.search.questions import parse_question
from tests.kit.searching import SearchText, add_texts, everything_of_viewer

#: Of each language two texts that are much alike, so that a word has something to tell apart.
TEXTS = {
    "japanese": SearchText("東京の図書館で古い地図を見つけました。", language="ja"),
    "japanese 2": SearchText("京都の博物館は月曜日に休みです。", language="ja"),
    "chinese": SearchText("这个系统每天重跑gen-itgc后生成报告。", language="zh"),
    "chinese 2": SearchText("我们在北京学习汉语和历史。", language="zh"),
    "korean": SearchText("검색 엔진은 한국어 문장을 찾습니다.", language="ko"),
    "thai": SearchText("ภาษาไทยไม่มีช่องว่างระหว่างคำ", language="th"),
    "thai 2": SearchText("ห้องสมุดแห่งนี้เปิดทุกวัน", language="th"),
    "khmer": SearchText("ភាសាខ្មែរមិនប្រើដកឃ្លារវាងពាក្យ", language="km"),
    "hindi": SearchText("हिन्दी में पुस्तकें पढ़ना अच्छा लगता है।", language="hi"),
    "hindi 2": SearchText("किसान खेतों में काम करते हैं।", language="hi"),
    "arabic": SearchText("كَتَبَ الطَّالِبُ الدَّرْسَ فِي الْمَدْرَسَةِ.", language="ar"),
    "arabic 2": SearchText("القطار يصل إلى المحطة مساء.", language="ar"),
    "hebrew": SearchText("הסֵפֶר מונח על השולחן בבית הספר.", language="he"),
    "german": SearchText(
        "Die Donaudampfschifffahrtsgesellschaft prüft die Straßenbeleuchtung.", language="de"
    ),
    "german 2": SearchText("Das Grundstücksverkehrsgenehmigungsverfahren dauert Monate.", language="de"),
    "turkish": SearchText("Diyarbakır'da ILIK bir akşam, ışıklar İstanbul'a döndü.", language="tr"),
    "turkish 2": SearchText("Kedi sıcak sobanın yanında uyuyor.", language="tr"),
    "russian": SearchText("Ёжик нёс яблоки через туманный лес.", language="ru"),
    "greek": SearchText("Ο ΟΔΥΣΣΕΥΣ ταξίδεψε στη θάλασσα.", language="el"),
    "vietnamese": SearchText("Tiếng Việt dùng nhiều dấu thanh.", language="vi"),
    "polish": SearchText("Zażółć gęślą jaźń w Łodzi.", language="pl"),
    "mixed": SearchText(
        "Das Kubernetes-Cluster in 大阪 läuft mit Python 3.12 und наш сервер.", language="de"
    ),
    "no language": SearchText("Café naïve, coöperate: the façade of São Paulo."),
}
QUESTIONS = [
    *(("japanese", word) for word in ("東京", "図書館", "古い", "地図", "図")),
    *(("japanese 2", word) for word in ("京都", "博物館", "月曜日", "休み")),
    *(("chinese", word) for word in ("系统", "每天", "itgc", "gen-itgc", "报告")),
    *(("chinese 2", word) for word in ("北京", "学习", "汉语", "学", "历史")),
    *(("korean", word) for word in ("검색", "엔진", "한국어", "문장")),
    *(("thai", word) for word in ("ภาษา", "ไทย", "ช่องว่าง", "คำ")),
    *(("thai 2", word) for word in ("ห้องสมุด", "เปิด", "ทุกวัน")),
    *(("khmer", word) for word in ("ភាសា", "ខ្មែរ", "ពាក្យ")),
    *(("hindi", word) for word in ("हिन्दी", "पुस्तकें", "पढ़ना", "अच्छा")),
    *(("hindi 2", word) for word in ("किसान", "खेतों", "काम")),
    *(("arabic", word) for word in ("كَتَبَ", "كتب", "الطالب", "الدَّرْسَ", "الدرس", "المدرسة")),
    *(("arabic 2", word) for word in ("القطار", "المحطة", "القِطَارُ", "مساء")),
    *(("hebrew", word) for word in ("הסֵפֶר", "השולחן", "מונח")),
    *(
        ("german", word)
        for word in ("Donaudampfschifffahrtsgesellschaft", "STRASSENBELEUCHTUNG", "Straßenbeleuchtung")
    ),
    *(("german 2", word) for word in ("Grundstücksverkehrsgenehmigungsverfahren", "Monat", "dauert")),
    *(
        ("turkish", word)
        for word in ("Diyarbakır", "DİYARBAKIR", "ılık", "ILIK", "IŞIKLAR", "İstanbul", "istanbul")
    ),
    *(("turkish 2", word) for word in ("sıcak", "SICAK", "sobanın", "uyuyor")),
    *(("russian", word) for word in ("ёжик", "ежик", "яблоко", "ТУМАННЫЙ")),
    *(("greek", word) for word in ("Οδυσσεύς", "οδυσσευς", "θάλασσα", "ΘΑΛΑΣΣΑ")),
    *(("vietnamese", word) for word in ("Tiếng", "Việt", "dấu", "tieng")),
    *(("polish", word) for word in ("zażółć", "Łodzi", "lodzi", "jaźń")),
    *(("mixed", word) for word in ("Kubernetes", "大阪", "python", "сервер", "3.12", "läuft")),
    *(("no language", word) for word in ("cafe", "café", "naive", "façade", "SAO", "cooperate")),
]


@pytest.fixture
def names(app: App) -> tuple[UUID, dict[UUID, str]]:
    """Somebody's library with every text, and which item is which."""
    viewer = uuid4()
    return viewer, dict(zip(add_texts(app.sessions, viewer, TEXTS.values()), TEXTS, strict=True))


def test_every_exact_word_finds_its_text_first(app: App, names: tuple[UUID, dict[UUID, str]]) -> None:
    viewer, known = names
    missed = [
        (name, word, found)
        for name, word in QUESTIONS
        if (found := _found(app, viewer, known, word))[:1] != [name]
    ]
    assert not missed


def test_every_whole_sentence_finds_its_text_first(app: App, names: tuple[UUID, dict[UUID, str]]) -> None:
    viewer, known = names
    missed = [name for name, text in TEXTS.items() if _found(app, viewer, known, text.text)[:1] != [name]]
    assert not missed


def test_a_phrase_in_any_script_finds_only_texts_that_have_it(
    app: App, names: tuple[UUID, dict[UUID, str]]
) -> None:
    viewer, known = names
    assert _found(app, viewer, known, '"図書館で古い"') == ["japanese"]
    assert _found(app, viewer, known, '"ไม่มีช่องว่าง"') == ["thai"]
    assert _found(app, viewer, known, '"पुस्तकें पढ़ना"') == ["hindi"]
    assert _found(app, viewer, known, '"古い図書館"') == []


def _found(app: App, viewer: UUID, known: dict[UUID, str], typed: str) -> list[str]:
    with app.sessions.read() as session:
        found = find_items(session, everything_of_viewer(viewer), parse_question(typed))
    return [known[item.media_id] for item in found.items]
