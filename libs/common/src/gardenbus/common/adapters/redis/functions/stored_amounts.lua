-- Objects and bytes that each namespace holds: `stored`, kept with every write, so that a budget can bound them.
--
-- Bytes are those of what requests write (WRITTEN, as it is stored), without the finalizer `gardener`, which comes with a
-- bind. A status is its agent's. The field `size` of an object has the bytes of each that it is counted with, so that a
-- write need not read them; an object without it was written before there was this index.
--
-- Lua has room for 200 locals in a text: what other files use is in one, and the rest within this block.

-- exports: amounts

amounts = {}

do
  local WRITTEN = {'meta', 'labels', 'spec', 'rest', 'last', 'setters', 'fin'}

  local function length(name, text)
    if name ~= 'fin' then return #text end
    local bytes = 0
    if text == '' then return 0 end
    for _, finalizer in ipairs(split_lines(text)) do
      if finalizer ~= 'gardener' then bytes = bytes + #finalizer + 1 end
    end
    return bytes
  end

  local function total(size)
    if size == '' then return 0 end
    local bytes = 0
    for part in string.gmatch(size, '%d+') do bytes = bytes + tonumber(part) end
    return bytes
  end

  -- The `size` of an object once `set` is written to it, and its sum. `object` has its `ver` ('': a new one) and `size`.
  function amounts.size_with(object_key, object, set)
    local sizes, counted, stored, bytes = {}, {}, {}, 0
    if object.size ~= '' then
      for part in string.gmatch(object.size, '%d+') do counted[#counted + 1] = tonumber(part) end
    elseif object.ver ~= '' then
      stored = read_fields(object_key, WRITTEN)
    end
    for i, name in ipairs(WRITTEN) do
      local text = set[name] or stored[name]
      sizes[i] = text and length(name, text) or counted[i] or 0
      bytes = bytes + sizes[i]
    end
    return table.concat(sizes, ' '), bytes
  end

  local function move_stored(P, ns, objects, bytes)
    local stored = P .. ':stored'
    if bytes ~= 0 then redis.call('HINCRBY', stored, ns .. ' bytes', whole(bytes)) end
    if objects ~= 0 and redis.call('HINCRBY', stored, ns, objects) <= 0 then
      redis.call('HDEL', stored, ns, ns .. ' bytes')
    end
  end

  -- Counts an object of a `size` ('': not counted yet) with another one, and its sum; returns that size.
  function amounts.count_as(P, ns, before, size, bytes)
    if size ~= before then move_stored(P, ns, before == '' and 1 or 0, bytes - total(before)) end
    return size
  end

  -- Counts what a put writes; returns the object's size. Where a budget was checked its sizes are known already.
  function amounts.count_put(P, op, object_key, object)
    if not op.size then op.size, op.bytes = amounts.size_with(object_key, object, op.set) end
    return amounts.count_as(P, op.ns, object.size, op.size, op.bytes)
  end

  -- Counts an object as it is stored now.
  function amounts.count_object(P, object_key, ns)
    local object = read_fields(object_key, {'ver', 'size'})
    local size, bytes = amounts.size_with(object_key, {ver = object.ver, size = ''}, {})
    redis.call('HSET', object_key, 'size', amounts.count_as(P, ns, object.size, size, bytes))
  end

  -- Counts an object no longer; to be called before its fields are removed.
  function amounts.uncount_object(P, ns, size)
    if size ~= '' then move_stored(P, ns, -1, -total(size)) end
  end

  -- Part of its limit on bytes by which an object that is there may go beyond it: who is at the limit can still annotate, as to
  -- confirm a deletion.
  local UPDATES_PART = 1.1

  -- The limit of a budget that a write exceeds, as a reply to guard `i`, or nil. What makes an object smaller never does.
  function amounts.stored_rejection(P, op, object, limits, i)
    op.size, op.bytes = amounts.size_with(P .. ':o:' .. op.key, object, op.set)
    local is_new, more = object.ver == '', op.bytes - total(object.size)
    if not is_new and more <= 0 then return end
    local held = redis.call('HMGET', P .. ':stored', op.ns, op.ns .. ' bytes')
    local objects, bytes = tonumber(held[1] or '0'), tonumber(held[2] or '0')
    if is_new and objects >= limits.storedObjects then
      return {'stored', i, 'storedObjects', whole(objects), whole(limits.storedObjects)}
    end
    if bytes + more > limits.storedBytes * (is_new and 1 or UPDATES_PART) then
      return {'stored', i, 'storedBytes', whole(bytes), whole(limits.storedBytes)}
    end
  end

  -- What each namespace holds: objects by "<ns>", bytes by "<ns> bytes".
  local function stored_amounts(keys, args)
    return reject_when_closed(keys[1]) or {'ok', redis.call('HGETALL', keys[1] .. ':stored')}
  end

  -- Of some objects after a version those that are not counted yet; returns the last version, '' when none is left.
  local function count_objects(keys, args)
    local P, op = keys[1], cmsgpack.unpack(args[1])
    local closed = reject_when_closed(P)
    if closed then return closed end
    local held, left = redis.call('HGETALL', P .. ':stored'), redis.call('ZCARD', P .. ':by_version')
    for i = 1, #held, 2 do
      if not string.find(held[i], ' ', 1, true) then left = left - tonumber(held[i + 1]) end
    end
    if left == 0 then return {''} end
    local found = redis.call('ZRANGEBYSCORE', P .. ':by_version', '(' .. op.after, '+inf', 'WITHSCORES', 'LIMIT', 0, op.limit)
    for i = 1, #found, 2 do
      local object_key = P .. ':o:' .. found[i]
      if redis.call('HEXISTS', object_key, 'size') == 0 then amounts.count_object(P, object_key, string.match(found[i], '^[^:]*:([^:]*):')) end
    end
    return {found[#found] or ''}
  end

  register('stored_amounts', stored_amounts, 'no-writes')
  register('count_objects', count_objects, 'allow-oom')
end
