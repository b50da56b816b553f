"""Every recipe of the architecture pages applies to today's sources; `recipes.py` builds them."""

import pathlib
import shutil

import pytest
import recipes

RECIPES = recipes.recipes()
PAGE = "`a.txt`, {place}:\n\n```cpp\nnew\n```\n\n```bash\ntrue\n```\n"


def copied(folder: pathlib.Path, tried: list[recipes.Recipe]) -> pathlib.Path:
    """Copy the files that recipes change."""
    for file in {file for recipe in tried for file in recipe.files}:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        if (recipes.ROOT / file).exists():
            shutil.copy(recipes.ROOT / file, folder / file)
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_every_block_of_a_recipe_has_its_place(name, tmp_path):
    recipe = RECIPES[name]
    recipe.apply(copied(tmp_path, [recipe]))
    for edit in recipe.edits:
        assert edit.block in (tmp_path / edit.file).read_text()


def test_recipes_apply_to_one_copy_together(tmp_path):
    assert len(RECIPES) == 6
    copied(tmp_path, list(RECIPES.values()))
    for recipe in RECIPES.values():
        recipe.apply(tmp_path)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("before `two`", "one\nnew\ntwo\ntwo b\n"),
        ("after `one`", "one\nnew\ntwo\ntwo b\n"),
        ("instead of `two b`", "one\ntwo\nnew\n"),
        ("after `on`", None),
        ("before `tw`", None),
        ("new", None),
    ],
)
def test_a_block_is_refused_without_one_place(tmp_path, place, expected):
    (tmp_path / "page.md").write_text(PAGE.format(place=place))
    (tmp_path / "a.txt").write_text("one\ntwo\ntwo b\n")
    recipe = recipes.read(tmp_path / "page.md")
    if expected is None:
        with pytest.raises(ValueError, match=r"a\.txt"):
            recipe.apply(tmp_path)
    else:
        recipe.apply(tmp_path)
        assert (tmp_path / "a.txt").read_text() == expected


@pytest.mark.parametrize("place", ["behind `two`", "after `two` or so"])
def test_a_page_with_a_block_that_has_no_place_is_refused(tmp_path, place):
    (tmp_path / "page.md").write_text(PAGE.format(place=place))
    with pytest.raises(ValueError, match=r"page\.md"):
        recipes.read(tmp_path / "page.md")
