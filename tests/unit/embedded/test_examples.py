"""The examples that travel with the distribution are those of the repository: there is one copy of each."""

from pathlib import Path

import pytest

from gardenbus.embedded.examples import Example

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("example", Example)
def test_every_file_of_an_example_is_a_link_to_the_repository_s(example: Example):
    packaged = {file.name: file for file in example.folder.iterdir()}

    assert {file.name for file in (EXAMPLES / example).iterdir()} == packaged.keys()
    assert all(file.is_symlink() and file.resolve() == EXAMPLES / example / name for name, file in packaged.items())
