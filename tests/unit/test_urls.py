"""URLs: which are valid, and one canonical spelling for each page and YouTube video."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus import urls
from nexus.errors import InvalidUrl

ID = "dQw4w9WgXcQ"
WATCH = f"https://www.youtube.com/watch?v={ID}"


def canonical(url: str) -> str:
    return urls.identify_article(url).canonical_url


# validation


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "example.com",
        "www.example.com/path",
        "//example.com/",
        "/path",
        "?q=1",
        "http",
        "http:",
        "http://",
        "https://",
        "https:///",
        "http://?",
        "http://#",
        "http:// example.com",
        "http://exa mple.com/",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://example.com:-1/",
        "http://[::1",
        "http://[::zz]/",
        "http://1.2.3.4.5/",
        "http://256.256.256.256/",
        "http://0x100000000/",
        "http://exa<mple.com/",
        "http://exa>mple.com/",
        "http://exa^mple.com/",
        "http://exa|mple.com/",
        "http://exa%00mple.com/",
        "http://exa%mple.com/",
        "http://a%2fb/",
        "http://a\x00b/",
        "http://xn--/",
        "http://\u00ad/",
        "ht tp://example.com/",
        "\ud800",
    ],
)
def test_strings_that_are_no_urls_are_refused(url: str) -> None:
    for take in (urls.identify_article, urls.identify_video):
        with pytest.raises(InvalidUrl):
            take(url)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/file",
        "file:///etc/passwd",
        "data:text/html,hello",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "mailto:a@example.com",
        "ws://example.com/",
        "about:blank",
        "blob:https://example.com/x",
        "view-source:https://example.com/",
        "x" * 100 + "://example.com/",
    ],
)
def test_only_http_and_https_are_accepted(url: str) -> None:
    for take in (urls.identify_article, urls.identify_video):
        with pytest.raises(InvalidUrl):
            take(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://:secret@example.com/",
        "https://user:secret@youtu.be/dQw4w9WgXcQ",
        "https://a@b@example.com/",
    ],
)
def test_a_url_with_credentials_is_refused_and_not_repeated(url: str) -> None:
    for take in (urls.identify_article, urls.identify_video):
        with pytest.raises(InvalidUrl) as caught:
            take(url)
        assert "secret" not in caught.value.message
        assert "user name or password" in caught.value.message


def test_empty_credentials_are_removed() -> None:
    assert canonical("https://@example.com/") == canonical("https://:@example.com/") == "https://example.com/"


def test_an_at_sign_behind_the_host_is_no_credential() -> None:
    assert canonical("https://example.com/@someone?a=b@c") == "https://example.com/@someone?a=b@c"
    assert canonical("https://example.com\\@evil.example/") == "https://example.com/@evil.example/"


def test_a_url_has_at_most_2048_characters() -> None:
    start = "https://example.com/"
    longest = start + "a" * (2048 - len(start))
    assert canonical(longest) == longest
    with pytest.raises(InvalidUrl):
        canonical(longest + "a")
    with pytest.raises(InvalidUrl):
        canonical(longest + "#fragment that would go")


def test_the_length_limit_applies_to_the_canonical_form_too() -> None:
    """Each ä becomes six characters."""
    start = "https://example.com/"
    fits = start + "ä" * ((2048 - len(start)) // 6)
    assert len(canonical(fits)) <= 2048
    with pytest.raises(InvalidUrl, match="once encoded"):
        canonical(fits + "ä")


@pytest.mark.parametrize("space", ["\n", "\t", "\r", "\r\n", " ", "\x00", "\x1f", "\x0b"])
def test_control_characters_and_spaces_around_a_url_are_dropped(space: str) -> None:
    for url in (f"{space}https://example.com/a", f"https://example.com/a{space}"):
        source = urls.identify_article(url)
        assert source.canonical_url == source.requested_url == "https://example.com/a"


@pytest.mark.parametrize("inside", ["\n", "\t", "\r"])
def test_line_ends_inside_a_url_are_removed_as_browsers_do(inside: str) -> None:
    source = urls.identify_article(f"https://exam{inside}ple.com/a{inside}b")
    assert source.canonical_url == source.requested_url == "https://example.com/ab"


@pytest.mark.parametrize("code", [*range(0x20), 0x7F])
def test_no_control_character_is_ever_kept(code: int) -> None:
    source = urls.identify_article(f"https://example.com/a{chr(code)}b?c{chr(code)}d")
    for kept in (source.canonical_url, source.requested_url):
        assert not set(kept) & {chr(n) for n in (*range(0x20), 0x7F)}


# canonicalization


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://EXAMPLE.COM/Path", "https://example.com/Path"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/#part", "https://example.com/"),
        ("https://example.com/a#", "https://example.com/a"),
        ("https://example.com/a?b#c?d", "https://example.com/a?b"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://example.com/?utm_source=x&a=1&utm_medium=y", "https://example.com/?a=1"),
        ("https://example.com/?gclid=x", "https://example.com/"),
        ("https://example.com/?fbclid=x&b=2", "https://example.com/?b=2"),
        ("https://example.com/?utm_=1&utm_anything_at_all", "https://example.com/"),
        ("https://example.com/?gclid", "https://example.com/"),
        (
            "https://example.com/?mygclid=1&gclids=2&xutm_a=3",
            "https://example.com/?mygclid=1&gclids=2&xutm_a=3",
        ),
        ("https://example.com/?utm=1&q=utm_source", "https://example.com/?utm=1&q=utm_source"),
        ("https://example.com/?z=1&a=2&m=3", "https://example.com/?z=1&a=2&m=3"),
        ("https://example.com/?a=1&a=2&a=1", "https://example.com/?a=1&a=2&a=1"),
        ("https://example.com/?a=%2F&b=+", "https://example.com/?a=%2F&b=+"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/a/", "https://example.com/a/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        ("https:example.com/a", "https://example.com/a"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
    ],
)
def test_each_url_has_one_canonical_spelling(url: str, expected: str) -> None:
    assert canonical(url) == expected


def test_the_scheme_and_the_host_make_a_difference() -> None:
    assert canonical("http://example.com/") != canonical("https://example.com/")
    assert canonical("https://www.example.com/") != canonical("https://example.com/")


def test_the_requested_url_is_kept_beside_the_canonical_form() -> None:
    source = urls.identify_article("HTTPS://Example.com/?utm_source=x#part")
    assert source.requested_url == "HTTPS://Example.com/?utm_source=x#part"
    assert source.canonical_url == "https://example.com/"
    assert (source.provider, source.provider_id, source.external_playback_url) == (None, None, None)


def test_an_article_on_youtube_is_an_article() -> None:
    assert urls.identify_article(f"{WATCH}&t=1").canonical_url == f"{WATCH}&t=1"
    assert urls.identify_article(WATCH).provider is None


piece = st.text(
    st.sampled_from(string.ascii_letters + string.digits + "-._~%/?&=#+:@ \t\nä€\U0001f600\\'\"<>[]|^"),
    max_size=20,
)
pair = st.sampled_from(
    ["utm_source=a", "UTM_A=1", "gclid", "fbclid=2", "a=1", "b", "=", "", "utm%5Fx=1", "v=3"]
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    scheme=st.sampled_from(["http", "https", "HTTP"]),
    host=st.sampled_from(["example.com", "EXAMPLE.com.", "bücher.example", "127.1", "[::1]", "a.b:8080"]),
    path=piece,
    pairs=st.lists(pair, max_size=6),
    tail=piece,
)
def test_canonicalization_is_idempotent(
    scheme: str, host: str, path: str, pairs: list[str], tail: str
) -> None:
    url = f"{scheme}://{host}/{path}?{'&'.join(pairs)}{tail}"
    for take in (urls.identify_article, urls.identify_video):
        try:
            once = take(url)
        except InvalidUrl:
            continue
        assert take(once.canonical_url).canonical_url == once.canonical_url
        assert "#" not in once.canonical_url
        assert once.canonical_url.isascii()


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.text(max_size=200) | st.text(max_size=100).map(lambda text: f"https://{text}"))
def test_any_input_is_canonicalized_or_refused(url: str) -> None:
    try:
        source = urls.identify_article(url)
    except InvalidUrl:
        return
    assert source.canonical_url.startswith(("http://", "https://"))
    assert len(source.canonical_url) <= 2048


# YouTube


@pytest.mark.parametrize(
    "url",
    [
        WATCH,
        f"http://youtube.com/watch?v={ID}",
        f"https://m.youtube.com/watch?v={ID}&feature=share",
        f"https://music.youtube.com/watch?v={ID}&list=PL123",
        f"https://www.youtube.com/watch?list=PL123&v={ID}&t=42s",
        f"https://www.youtube.com/watch/?v={ID}",
        f"https://WWW.YouTube.COM:443/watch?v={ID}#t=1",
        f"https://www.youtube.com./watch?v={ID}",
        f"https://www.youtube.com/embed/{ID}",
        f"https://www.youtube.com/embed/{ID}?autoplay=1",
        f"https://youtube-nocookie.com/embed/{ID}",
        f"https://www.youtube-nocookie.com/embed/{ID}",
        f"https://www.youtube.com/shorts/{ID}",
        f"https://youtube.com/shorts/{ID}?feature=share",
        f"https://www.youtube.com/live/{ID}?si=abc",
        f"https://www.youtube.com/v/{ID}",
        f"https://www.youtube.com/v/{ID}/",
        f"https://youtu.be/{ID}",
        f"https://youtu.be/{ID}?si=abcdef&t=3",
        f"https://youtu.be/{ID}/",
        f" https://youtu.be/{ID}\n",
    ],
)
def test_every_spelling_of_a_youtube_video_is_one_source(url: str) -> None:
    source = urls.identify_video(url)
    assert (source.provider, source.provider_id) == ("youtube", ID)
    assert source.canonical_url == source.external_playback_url == WATCH


@pytest.mark.parametrize("good", ["-_-_-_-_-_-", "00000000000", "AAAAAAAAAAA", "abcdefghij-"])
def test_a_youtube_id_may_hold_any_url_safe_character(good: str) -> None:
    assert urls.identify_video(f"https://youtu.be/{good}").provider_id == good


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "short",
        ID + "x",
        ID[:-1],
        "dQw4w9WgXc!",
        "dQw4w9WgXc%20",
        "dQw4w9WgXc+",
        "dQw4w9WgXcä",
        "videoseries",
        "live_stream",
        "dQw4w9WgXc%0A",
        ID + "%0A",
    ],
)
@pytest.mark.parametrize(
    "pattern",
    [
        "https://www.youtube.com/watch?v={}",
        "https://www.youtube.com/embed/{}",
        "https://www.youtube.com/shorts/{}",
        "https://www.youtube.com/live/{}",
        "https://www.youtube.com/v/{}",
        "https://youtu.be/{}",
    ],
)
def test_invalid_youtube_ids_are_refused(pattern: str, bad: str) -> None:
    with pytest.raises(InvalidUrl):
        urls.identify_video(pattern.format(bad))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "watch",
        "watch?V=" + ID,
        "watch?list=PL123",
        "watch?v=&v=" + ID,
        "playlist?list=PL123",
        "@someone",
        "channel/UC123",
        "feed/trending",
        "results?search_query=" + ID,
        "embed",
        "embed/",
        "shorts/",
        ID,
        f"clip/{ID}",
        f"other/embed/{ID}",
    ],
)
def test_a_youtube_page_that_is_not_a_video_is_refused_for_videos(path: str) -> None:
    with pytest.raises(InvalidUrl):
        urls.identify_video(f"https://www.youtube.com/{path}")
    assert urls.identify_article(f"https://www.youtube.com/{path}")


@pytest.mark.parametrize(
    "host", ["notyoutube.com", "youtube.com.evil.example", "youtu.be.example", "xyoutu.be", "vimeo.com"]
)
def test_videos_on_other_hosts_keep_their_own_address(host: str) -> None:
    source = urls.identify_video(f"https://{host}/watch?v={ID}&utm_source=x")
    assert source.provider is None
    assert source.canonical_url == source.external_playback_url == f"https://{host}/watch?v={ID}"


# Vimeo, PeerTube and files


@pytest.mark.parametrize(
    "url",
    [
        "https://vimeo.com/76979871",
        "http://www.vimeo.com/76979871/",
        "https://vimeo.com/76979871?share=copy#t=10s",
        "https://vimeo.com/video/76979871",
        "https://vimeo.com/channels/staffpicks/76979871",
        "https://vimeo.com/groups/motion/videos/76979871",
        "https://vimeo.com/showcase/123/video/76979871",
        "https://vimeo.com/album/123/video/76979871",
        "https://player.vimeo.com/video/76979871?autoplay=1",
    ],
)
def test_every_spelling_of_a_vimeo_video_is_one_source(url: str) -> None:
    source = urls.identify_video(url)
    assert (source.provider, source.provider_id) == ("vimeo", "76979871")
    assert source.canonical_url == source.external_playback_url == "https://vimeo.com/76979871"


@pytest.mark.parametrize(
    "url", ["https://vimeo.com/76979871/8272103f6e", "https://player.vimeo.com/video/76979871?h=8272103f6e"]
)
def test_an_unlisted_vimeo_video_is_another_one_without_its_key(url: str) -> None:
    source = urls.identify_video(url)
    assert source.provider_id == "76979871/8272103f6e"
    assert source.canonical_url == "https://vimeo.com/76979871/8272103f6e"


@pytest.mark.parametrize(
    "path", ["", "/", "/staffpicks", "/0", "/1234567890123", "/76979871x", "/76979871/not-a-key", "/user/1"]
)
def test_other_pages_of_vimeo_keep_their_own_address(path: str) -> None:
    source = urls.identify_video(f"https://vimeo.com{path}")
    assert source.provider is None
    assert source.canonical_url == f"https://vimeo.com{path or '/'}"


@pytest.mark.parametrize(
    "url",
    [
        WATCH,
        "https://vimeo.com/76979871",
        "https://example.com/talk.mp3",
        "https://example.com/a/TALK.MP4?token=1#t=3",
        "https://example.com/v.webm",
        "https://example.com/v.m4a",
        "https://tube.example/videos/watch/9c9de5e8-0a1e-484a-b099-e80766180a6d",
        "https://tube.example/w/9c9de5e8-0a1e-484a-b099-e80766180a6d",
    ],
)
def test_an_address_tells_that_it_is_a_video(url: str) -> None:
    assert urls.is_video(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "https://example.com/mp3",
        "https://example.com/.mp3/page",
        "https://example.com/how-to-make.mp3.html",
        "https://example.com/?file=a.mp3",
        "https://example.com/videos/watch/one",
        "https://vimeo.com/blog",
    ],
)
def test_other_addresses_are_taken_for_articles(url: str) -> None:
    assert not urls.is_video(url)


# what people type


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("example.com/an-article", "https://example.com/an-article"),
        ("  www.example.com ", "https://www.example.com"),
        ("//example.com/a", "https://example.com/a"),
        ("example.com:8443/a", "https://example.com:8443/a"),
        ("example.com?q=1", "https://example.com?q=1"),
        ("127.0.0.1/a", "https://127.0.0.1/a"),
        ("bücher.example/ä", "https://bücher.example/ä"),
        ("http://example.com/a", "http://example.com/a"),
        ("mailto:me@example.com", "mailto:me@example.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("me:secret@example.com", "me:secret@example.com"),
        ("nonsense", "nonsense"),
        ("two words.example", "two words.example"),
        (".example.com", ".example.com"),
        ("", ""),
    ],
)
def test_an_address_without_a_scheme_means_https(typed: str, meant: str) -> None:
    assert urls.with_scheme(typed) == meant


@pytest.mark.parametrize(
    ("found", "other"),
    [
        ("https://www.example.com/b?utm_source=x", "https://www.example.com/b"),
        ("http://example.com/a", "http://example.com/a"),
        ("https://example.com/a#part", None),
        ("https://example.com/", None),
        ("https://example.com/?p=1", "https://example.com/?p=1"),
        ("https://blog.example.com/a", None),
        ("https://example.com:8443/b", None),
        ("https://example.org/a", None),
        ("ftp://example.com/b", None),
        ("/b", None),
        ("", None),
        (None, None),
    ],
)
def test_another_address_of_a_page_is_on_the_same_site(found: str | None, other: str | None) -> None:
    assert urls.other_address("https://example.com/a", found) == other
