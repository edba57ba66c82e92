import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import limits, names
from core.errors import BrainError, InvalidArgument, LimitExceeded

unhurried = settings(deadline=None)

GOOD_STEMS = [
    "a",
    "Z",
    "0",
    "Payments",
    "release notes",
    "a-b_c d",
    "2026-11-30",
    "a-",
    "a_",
    "a  b",
    "x" * 64,
    "x" * 63 + "-",
    "9 lives",
    # Near the names of devices, and fine:
    "COM0",
    "COM10",
    "COM",
    "LPT",
    "lpt0",
    "cona",
    "con-",
    "a con",
    "console",
    "nul l",
    "COM1 COM1",
    "CLOCK",
]
BAD_STEMS = [
    "",
    " ",
    "  ",
    " a",
    "a ",
    "-a",
    "_a",
    "-",
    "_",
    ".",
    "..",
    "...",
    ".git",
    ".a",
    "a.b",
    "a.",
    "git.",
    "a/b",
    "/",
    "a\\b",
    "\\",
    "a:b",
    "a*",
    "a?",
    "~",
    "~a",
    "$a",
    "a\tb",
    "a\nb",
    "a\n",
    "a\r",
    "\0",
    "a\0",
    "a\x7f",
    "a\x85",
    "ä",
    "a\u0301",
    "\u212aelvin",  # Kelvin sign: lowercases to k
    "ſ",  # long s: uppercases to S
    "a\u00a0b",
    "a\u2028b",
    "\ufeffa",
    "٣",  # a digit, not an ASCII one
    "Ａ",  # full width
    "\ud800",
    "😀",
    "x" * 65,
    "x" * 1000,
]
DEVICES = ["con", "nul", "aux", "prn"] + [port + digit for port in ("com", "lpt") for digit in "123456789"]


# -- a second implementation: a table, read off the seed's sentences -------------------------------------------

KIND = (
    dict.fromkeys(string.ascii_letters + string.digits, "letter or digit")
    | dict.fromkeys("_-", "mark")
    | {" ": "blank"}
)
NEXT = {
    ("nothing", "letter or digit"): "name",
    ("name", "letter or digit"): "name",
    ("name", "mark"): "name",
    ("name", "blank"): "blank at the end",
    ("blank at the end", "letter or digit"): "name",
    ("blank at the end", "mark"): "name",
    ("blank at the end", "blank"): "blank at the end",
}


def oracle(stem: str) -> bool:
    """Whether the seed's section 4.1 allows the stem."""
    state = "nothing"
    for character in stem:
        state = NEXT.get((state, KIND.get(character, "refused")), "refused")
    return state == "name" and len(stem) < 65 and stem.lower() not in DEVICES


def oracle_key(name: str) -> bytes:
    """The lookup key of a name: ``bytes.lower`` knows ASCII and nothing else."""
    return name.encode("utf-8", "surrogatepass").lower()


# Characters that stand near a rule, many times more often than the rest of Unicode.
near_characters = st.one_of(
    st.sampled_from("aAzZ09kKsS _-. /\\\0\n\x7fé\u212aſ\u2028\ud800"),
    st.characters(),
)
any_case = st.lists(st.booleans(), min_size=4, max_size=4)
devices = st.builds(
    lambda device, upper: "".join(c.upper() if u else c for c, u in zip(device, upper, strict=False)),
    st.sampled_from(DEVICES),
    any_case,
)
good_characters = st.sampled_from(string.ascii_letters + string.digits + " _-")
stems = st.one_of(
    st.text(near_characters, max_size=8),
    st.text(good_characters, max_size=8),
    st.text(good_characters, min_size=62, max_size=67),
    devices,
    st.builds(str.__add__, devices, st.text(near_characters, max_size=2)),
)
good_stems = st.text(good_characters, min_size=1, max_size=64).filter(oracle)


def accepts(check: Callable[..., Any], argument: str) -> bool:
    """Whether the check takes it. A refusal is one that a caller may see, and names the field it was given."""
    try:
        check(argument, field="the_field")
    except (InvalidArgument, LimitExceeded) as error:
        refusal = error
    else:
        return True
    assert refusal.details["field"] == "the_field"
    return False


# -- stems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", GOOD_STEMS)
def test_a_good_name_is_taken_as_it_is(stem: str) -> None:
    assert oracle(stem)
    assert names.is_stem(stem)
    assert names.check_folder_name(stem) == stem
    assert names.check_filename(stem + ".md") == stem + ".md"


@pytest.mark.parametrize("stem", BAD_STEMS)
def test_a_bad_name_is_refused_for_folders_and_entries(stem: str) -> None:
    assert not oracle(stem)
    assert not names.is_stem(stem)
    assert not accepts(names.check_folder_name, stem)
    assert not accepts(names.check_filename, stem + ".md")


@pytest.mark.parametrize("device", DEVICES)
def test_the_name_of_a_windows_device_is_refused_in_any_case(device: str) -> None:
    for spelled in (device, device.upper(), device.capitalize()):
        assert not accepts(names.check_folder_name, spelled)
        assert not accepts(names.check_filename, spelled + ".md")
        assert accepts(names.check_folder_name, spelled + "x")


@unhurried
@given(stems)
def test_names_are_judged_as_the_second_implementation_judges_them(stem: str) -> None:
    assert names.is_stem(stem) is oracle(stem)
    assert accepts(names.check_folder_name, stem) is oracle(stem)
    assert accepts(names.check_filename, stem + ".md") is oracle(stem)


def test_every_single_character_is_judged_as_the_second_implementation_judges_it() -> None:
    for number in range(0x3000):
        for stem in (chr(number), f"a{chr(number)}", f"a{chr(number)}b"):
            assert names.is_stem(stem) is oracle(stem), ascii(stem)


@pytest.mark.parametrize(
    ("stem", "error"),
    [
        ("x" * 65, LimitExceeded),
        ("x" * 64 + " ", LimitExceeded),
        ("é" * 65, InvalidArgument),
        ("", InvalidArgument),
        ("CON", InvalidArgument),
        ("..", InvalidArgument),
    ],
)
def test_only_a_name_that_is_merely_too_long_is_over_a_limit(stem: str, error: type[BrainError]) -> None:
    with pytest.raises(error) as refused:
        names.check_folder_name(stem)

    if error is LimitExceeded:
        assert refused.value.details == {"field": "name", "limit": 64, "unit": "characters"}


# -- filenames ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filename",
    [
        "",
        "a",
        ".md",
        " .md",
        "a.MD",
        "a.Md",
        "a.md ",
        "a.mdx",
        "a.md.md",
        "a md",
        "amd",
        "a.txt",
        "a .md",
        "x" * 65 + ".md",
    ],
)
def test_the_filename_of_a_new_entry_is_a_name_and_the_lowercase_extension(filename: str) -> None:
    assert not accepts(names.check_filename, filename)


def test_the_extension_does_not_count_for_the_length_of_a_name() -> None:
    assert names.check_filename("x" * 64 + ".md") == "x" * 64 + ".md"


# -- collisions -----------------------------------------------------------------------------------------------


@unhurried
@given(st.text(near_characters, max_size=6), st.text(near_characters, max_size=6))
@example("K", "\u212a")
@example("s", "ſ")
@example("I", "ı")
@example("ß", "SS")
@example("É", "é")
def test_names_collide_when_they_are_equal_without_ascii_case_and_only_then(one: str, other: str) -> None:
    assert (names.fold(one) == names.fold(other)) is (oracle_key(one) == oracle_key(other))
    assert names.fold(one.swapcase() if one.isascii() else one) == names.fold(one)
    assert names.fold(names.fold(one)) == names.fold(one)


def test_a_folder_and_an_entry_of_its_name_do_not_collide() -> None:
    assert names.fold("alpha") != names.fold("alpha.md")
    assert names.fold("Alpha.MD") == names.fold("aLPHA.md")


# -- paths ----------------------------------------------------------------------------------------------------


def folder_path_oracle(path: str) -> bool:
    return path == "" or (path.isascii() and len(path) <= 1024 and all(map(oracle, path.split("/"))))


def entry_path_oracle(path: str) -> bool:
    parts = path.split("/")
    return (
        folder_path_oracle(path[:-3])
        and path[-3:].lower() == ".md"
        and oracle(parts[-1][:-3])
        and len(path) <= 1024
    )


path_parts = st.one_of(
    good_stems, good_stems, stems, st.sampled_from(["", ".", "..", ".git", "a.md", "a.MD"])
)
paths = st.one_of(st.lists(path_parts, max_size=5).map("/".join), st.text(near_characters, max_size=12))


@unhurried
@given(paths)
def test_folder_paths_are_judged_as_the_second_implementation_judges_them(path: str) -> None:
    assert accepts(names.split_folder_path, path) is folder_path_oracle(path)


@unhurried
@given(st.builds(str.__add__, paths, st.sampled_from(["", ".md", ".MD", ".mD", ".md/", "md", ".txt"])))
def test_entry_paths_are_judged_as_the_second_implementation_judges_them(path: str) -> None:
    assert accepts(names.split_entry_path, path) is entry_path_oracle(path)


@unhurried
@given(st.lists(good_stems, max_size=6), good_stems)
def test_a_good_path_comes_apart_and_together_again(folders: list[str], stem: str) -> None:
    path = "/".join(folders)
    entry_path = names.join(path, stem + ".md", field="path")

    assert names.split_folder_path(path) == folders
    assert names.split_entry_path(entry_path) == (folders, stem + ".md")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a",
        "a/",
        "a//b",
        "//a",
        "a/.",
        "./a",
        "a/..",
        "../a",
        "a/../b",
        "a/.git/b",
        "a\\b",
        "a /b",
        "~/a",
    ],
)
def test_an_absolute_path_or_one_that_walks_about_is_refused_and_not_rewritten(path: str) -> None:
    assert not accepts(names.split_folder_path, path)
    assert not accepts(names.split_entry_path, path + "/page.md")
    assert not accepts(names.split_entry_path, path)


def test_looking_up_an_entry_takes_any_case_of_the_extension() -> None:
    assert names.split_entry_path("Eng/Page.MD") == (["Eng"], "Page.MD")


def test_the_path_of_the_root_is_empty_and_no_entry_has_it() -> None:
    assert names.split_folder_path("") == []
    assert not accepts(names.split_entry_path, "")
    assert not accepts(names.split_entry_path, ".md")
    assert names.join("", "Eng", field="path") == "Eng"


def path_of_bytes(length: int) -> str:
    """A folder path of so many bytes."""
    whole, rest = divmod(length, 65)
    path = "/".join(["x" * 64] * whole + (["y" * rest] if rest else []))
    assert len(path) == length
    return path


def test_a_path_has_at_most_1024_bytes() -> None:
    assert limits.PATH_MAX_BYTES == 1024
    longest = path_of_bytes(1024)
    assert len(names.split_folder_path(longest)) == 16
    for path in (longest + "y", path_of_bytes(1090), "é" * 513, "\ud800" * 342):
        with pytest.raises(LimitExceeded) as refused:
            names.split_folder_path(path)
        assert refused.value.details == {"field": "folder_path", "limit": 1024, "unit": "bytes"}
    with pytest.raises(InvalidArgument):
        names.split_folder_path("é" * 512)


def test_a_path_of_an_entry_counts_with_its_extension() -> None:
    names.split_entry_path(path_of_bytes(1021) + ".md")
    with pytest.raises(LimitExceeded):
        names.split_entry_path(path_of_bytes(1022) + ".md")


def test_a_name_is_not_joined_to_a_parent_that_is_too_long_for_it() -> None:
    parent = path_of_bytes(1000)

    assert len(names.join(parent, "z" * 23, field="name")) == 1024
    with pytest.raises(LimitExceeded) as refused:
        names.join(parent, "z" * 24, field="name")
    assert refused.value.details == {"field": "name", "limit": 1024, "unit": "bytes"}


# -- usernames ------------------------------------------------------------------------------------------------


def username_oracle(username: str) -> bool:
    first, rest = set("abcdefghijklmnopqrstuvwxyz0123456789"), set("._-")
    return 1 <= len(username) <= 64 and username[0] in first and set(username) <= first | rest


@unhurried
@given(
    st.one_of(
        st.text(st.one_of(st.sampled_from("az09._-AZ \n@é٣ſ"), st.characters()), max_size=8),
        st.text(st.sampled_from("az09._-"), min_size=62, max_size=67),
    )
)
@example("ada\n")
@example("")
@example("deploy-bot")
def test_usernames_are_judged_as_a_second_implementation_judges_them(username: str) -> None:
    assert accepts(names.check_username, username) is username_oracle(username)


def test_a_username_of_65_characters_is_over_its_limit() -> None:
    assert names.check_username("a" * 64) == "a" * 64
    with pytest.raises(LimitExceeded):
        names.check_username("a" * 65)
