from hypothesis import given
from hypothesis import strategies as st

from access.authorizer import highest_by_folder, strongest
from core.types import Role

FOLDERS = ["root", "eng", "payments", "checkout", "sales", "hr"]

folders = st.sampled_from(FOLDERS)
roles = st.sampled_from(Role)
grants = st.dictionaries(folders, roles)
caps = st.none() | st.dictionaries(folders, roles)
lineages = st.lists(folders, unique=True, min_size=1)


def allowed_by_the_rules(
    granted: dict[str, Role], capped: dict[str, Role] | None, lineage: list[str]
) -> list[Role]:
    """Every role that somebody holds there, each judged alone: given on the way from the root, and let through."""
    held = []
    for role in Role:
        is_given = any(folder in lineage and given >= role for folder, given in granted.items())
        is_let_through = capped is None or any(
            folder in lineage and cap >= role for folder, cap in capped.items()
        )
        if is_given and is_let_through:
            held.append(role)
    return held


@given(grants, caps, lineages)
def test_the_strongest_role_is_the_highest_that_a_grant_gives_and_a_cap_lets_through(
    granted: dict[str, Role], capped: dict[str, Role] | None, lineage: list[str]
) -> None:
    held = allowed_by_the_rules(granted, capped, lineage)

    assert strongest(granted, capped, lineage) == (held[-1] if held else None)


@given(grants, lineages, folders, roles)
def test_one_more_grant_never_takes_anything_away(
    granted: dict[str, Role], lineage: list[str], folder: str, role: Role
) -> None:
    before = strongest(granted, None, lineage) or 0
    after = strongest({**granted, folder: max(role, granted.get(folder, role))}, None, lineage) or 0

    assert after >= before


@given(grants, caps, lineages)
def test_caps_only_ever_narrow(
    granted: dict[str, Role], capped: dict[str, Role] | None, lineage: list[str]
) -> None:
    assert (strongest(granted, capped, lineage) or 0) <= (strongest(granted, None, lineage) or 0)


@given(grants, caps, lineages, folders)
def test_a_folder_below_gives_at_least_the_role_of_the_one_above(
    granted: dict[str, Role], capped: dict[str, Role] | None, lineage: list[str], child: str
) -> None:
    above = strongest(granted, capped, lineage) or 0

    assert (strongest(granted, capped, [*lineage, f"{child} below"]) or 0) >= above


@given(st.lists(st.tuples(folders, roles)))
def test_of_two_caps_on_one_folder_the_higher_counts(scopes: list[tuple[str, Role]]) -> None:
    by_folder = highest_by_folder(scopes)

    assert set(by_folder) == {folder for folder, _ in scopes}
    assert all(by_folder[folder] >= cap and (folder, by_folder[folder]) in scopes for folder, cap in scopes)


@given(grants, lineages)
def test_an_empty_list_of_caps_leaves_nothing(granted: dict[str, Role], lineage: list[str]) -> None:
    assert strongest(granted, {}, lineage) is None
