-- Versions, the fields of an object, and the indexes that follow from them.

-- exports: next_version, write_fields, begin_together, end_together, reindex_set, without_parts, reindex_claims

function next_version(P, key)
  local version = redis.call('INCR', P .. ':version')
  redis.call('ZADD', P .. ':by_version', version, key)
  if together then together.versions[key] = nil end
  return version
end

-- Begins to collect what creations have in common. What is collected is not in the store until `end_together`.
function begin_together()
  together = together or {sets = {}, counts = {}, versions = {}, noted = {}, read = {}}
end

-- Members of one command: Lua puts no more than some thousands on its stack.
local AT_ONCE = 1000

-- Writes what was collected: before anything reads it, and at the end.
function end_together()
  local collected = together
  together = nil
  for set, members in pairs(collected and collected.sets or {}) do
    for first = 1, #members, AT_ONCE do
      redis.call('SADD', set, unpack(members, first, math.min(first + AT_ONCE - 1, #members)))
    end
  end
  for _, count in pairs(collected and collected.counts or {}) do count.add(count) end
end

-- Writes fields; '' removes one, of which a new object has none.
function write_fields(object_key, fields, is_new)
  local set, unset = {}, {}
  for name, value in pairs(fields) do
    if value == '' then unset[#unset + 1] = name
    else set[#set + 1] = name; set[#set + 1] = value end
  end
  if #set > 0 then redis.call('HSET', object_key, unpack(set)) end
  if #unset > 0 and not is_new then redis.call('HDEL', object_key, unpack(unset)) end
end

function reindex_set(P, prefix, before, after, key)
  local kept = {}
  for _, member in ipairs(split_lines(after)) do
    kept[member] = true
    local set = P .. prefix .. member
    if together then
      local members = together.sets[set] or {}
      members[#members + 1], together.sets[set] = key, members
    else
      redis.call('SADD', set, key)
    end
  end
  for _, member in ipairs(split_lines(before)) do
    if not kept[member] then redis.call('SREM', P .. prefix .. member, key) end
  end
end

-- References without those to parts of a profile (`<profile>#<part>`): a shoot that is being deleted needs none of them.
function without_parts(refs)
  local kept = {}
  for _, reference in ipairs(split_lines(refs)) do
    if not string.find(reference, '#', 1, true) then kept[#kept + 1] = reference end
  end
  return table.concat(kept, '\n')
end

function reindex_claims(P, before, after, key)
  local kept = {}
  for _, claim in ipairs(split_lines(after)) do
    kept[claim] = true
    redis.call('HSET', P .. ':claims', claim, key)
  end
  for _, claim in ipairs(split_lines(before)) do
    if not kept[claim] and redis.call('HGET', P .. ':claims', claim) == key then
      redis.call('HDEL', P .. ':claims', claim)
    end
  end
end
