-- Versions, the fields of an object, and the indexes that follow from them.

-- exports: next_version, write_fields, reindex_set, without_parts, reindex_claims

function next_version(P, key)
  local version = redis.call('INCR', P .. ':version')
  redis.call('ZADD', P .. ':by_version', version, key)
  return version
end

function write_fields(object_key, fields)
  local set, unset = {}, {}
  for name, value in pairs(fields) do
    if value == '' then unset[#unset + 1] = name
    else set[#set + 1] = name; set[#set + 1] = value end
  end
  if #set > 0 then redis.call('HSET', object_key, unpack(set)) end
  if #unset > 0 then redis.call('HDEL', object_key, unpack(unset)) end
end

function reindex_set(P, prefix, before, after, key)
  local kept = {}
  for _, member in ipairs(split_lines(after)) do
    kept[member] = true
    redis.call('SADD', P .. prefix .. member, key)
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
