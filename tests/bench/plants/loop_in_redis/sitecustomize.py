"""Plants a loop in the store's function that stores objects: so much CPU for each object that it stores."""

import os
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1]))

import chained

from gardenbus.common.adapters.redis import function_library

PLANTED_SECONDS = float(os.environ.get("PLANTED_SECONDS", "0"))

files = dict(function_library.texts())
place = "local function put_one(P, op)\n"
assert place in files["objects.lua"]
loop = f"  local ends_at = os.clock() + {PLANTED_SECONDS}\n  while os.clock() < ends_at do end\n"
files["objects.lua"] = files["objects.lua"].replace(place, place + loop)
function_library.LIBRARY = function_library.join_files(files)

chained.start_others(__file__)
