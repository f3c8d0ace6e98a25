"""The tables of keys and fields at the head of the store's functions."""

import re

from gardenbus.common.adapters.redis.function_library import texts
from gardenbus.common.adapters.redis.records import PARTS, PRIVATE
from gardenbus.docs.store import object_fields, store_keys

CODE = "\n".join(re.sub(r"(^|\s)--.*", "", line) for text in texts().values() for line in text.splitlines())
FIELD_LIST = re.compile(r"local (?:PARTS|CURRENT|PLACED|UNSCHEDULABLE|COUNTED|WRITTEN) = \{([^}]*)\}")
WRITTEN_FIELD = re.compile(r"redis\.call\('H(?:SET|SETNX|GET|DEL|EXISTS)', object_key, '(\w+)'")


def test_every_key_that_a_function_uses_is_in_the_table_and_no_other():
    used = {*re.findall(r"P \.\. ':(\w+)", CODE), *re.findall(r"counter\(P, '(\w+)'\)", CODE)}
    assert used == {re.split(r"[:<]", key.name)[0] for key in store_keys()}


def test_every_field_of_an_object_that_a_function_uses_is_in_the_table():
    used = {*PARTS, *PRIVATE, *WRITTEN_FIELD.findall(CODE)}
    for names in FIELD_LIST.findall(CODE):
        used.update(re.findall(r"'(\w+)'", names))
    assert used <= {field.name for field in object_fields()}


def test_no_key_and_no_field_is_in_a_table_twice():
    for names in ([key.name for key in store_keys()], [field.name for field in object_fields()]):
        assert len(names) == len(set(names))
