-- Backups: what is stored above a version, in the order of versions, and putting it into an empty store.
--
-- Every change gives an object a new version, and moves it to the end of `by_version`; a removal goes to the end of
-- `graves`. So whoever walks both from a version on, until a page reaches their end, has each object once or more, the last
-- time as it is stored at that moment: whatever was changed behind the walk came again before it.

-- What is small, and changes without a version: read with the last page.
local NUMBERS = {'version', 'usage_version', 'gain_objects', 'gain_usage'}
local HASHES = {'relay', 'streams', 'fences', 'losses_reported'}

local function entries_above(P, index, op, is_dead, found)
  local members = redis.call('ZRANGEBYSCORE', P .. ':' .. index, '(' .. whole(op.after), '+inf', 'WITHSCORES', 'LIMIT', 0, op.limit)
  for i = 1, #members, 2 do
    found[#found + 1] = {key = members[i], version = tonumber(members[i + 1]), is_dead = is_dead}
  end
end

local function small_state(P)
  local numbers, hashes = {}, {}
  for i, name in ipairs(NUMBERS) do numbers[i] = whole(counter(P, name)) end
  for i, name in ipairs(HASHES) do hashes[i] = redis.call('HGETALL', P .. ':' .. name) end
  return {numbers, hashes, redis.call('LRANGE', P .. ':losses', 0, -1)}
end

-- A page of what is stored or was removed above `after`: the opening and the format of the store, the version up to which
-- the reply is complete, whether it is the last page, its entries, and with the last page the small state. `is_delta`:
-- what was removed above `after` must still be remembered.
local function backup_page(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  if op.is_delta and counter(P, 'collected') > op.after then return {'collected', whole(counter(P, 'collected'))} end
  local found = {}
  entries_above(P, 'by_version', op, false, found)
  entries_above(P, 'graves', op, true, found)
  table.sort(found, function(one, other) return one.version < other.version end)
  local entries, is_last = {}, #found < op.limit
  for i = 1, math.min(#found, op.limit) do
    local entry = found[i]
    entries[i] = {entry.key, whole(entry.version), entry.is_dead and 1 or 0,
                  redis.call('HGETALL', P .. (entry.is_dead and ':dead:' or ':o:') .. entry.key)}
  end
  return {'ok', redis.call('GET', P .. ':opening'), FORMAT,
          is_last and whole(counter(P, 'version')) or whole(found[op.limit].version),
          is_last and 1 or 0, entries, is_last and small_state(P) or {}}
end

-- How many objects were written or removed above a version.
local function backup_changes(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local above = '(' .. whole(op.after)
  return {'ok', redis.call('ZCOUNT', P .. ':by_version', above, '+inf') + redis.call('ZCOUNT', P .. ':graves', above, '+inf'),
          redis.call('GET', P .. ':opening')}
end

-- Takes the lead for a restore and closes the store, or says what speaks against it: a backup of a format that only a newer
-- library reads, another leader, or objects that are not of this restore begun before.
local function restore_begin(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local rejected = reject_newer(P)
  if rejected then return rejected end
  if op.format > FORMAT then return {'newer', op.format} end
  local leader = redis.call('GET', P .. ':leader')
  if leader and leader ~= op.leader then return {'other', leader} end
  local begun = redis.call('GET', P .. ':restoring') or ''
  local objects = redis.call('ZCARD', P .. ':by_version')
  if begun == '' and objects > 0 then return {'not-empty', objects} end
  if begun ~= '' and begun ~= op.name then return {'begun', begun} end
  redis.call('SET', P .. ':leader', op.leader, 'PX', op.ttl_ms)
  redis.call('SET', P .. ':restoring', op.name)
  redis.call('DEL', P .. ':opening', P .. ':indexed') -- the backup may be of an older format
  if objects == 0 then redis.call('DEL', P .. ':stored') end
  return {'ok', objects}
end

-- Bytes that are no text: cmsgpack reads texts only.
local function from_hex(digits)
  return (string.gsub(digits, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

local function restores(P, op)
  return holds_lead(P, op.leader) and redis.call('EXISTS', P .. ':restoring') == 1
end

-- Stores an object, or the memory of its removal, as it was, and its place in every index. May be repeated.
local function restore_record(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not restores(P, op) then return {'other'} end
  redis.call('SET', P .. ':leader', op.leader, 'PX', op.ttl_ms)
  for name, digits in pairs(op.hex) do op.set[name] = from_hex(digits) end
  if op.dead then
    write_fields(P .. ':dead:' .. op.key, op.set)
    redis.call('ZADD', P .. ':graves', op.version, op.key)
    return {'ok'}
  end
  local set, member, object_key = op.set, op.ns .. '/' .. op.name, P .. ':o:' .. op.key
  local counted = redis.call('HGET', object_key, 'demand') or ''
  set.size = nil -- it is counted here, by this version
  write_fields(object_key, set)
  amounts.count_object(P, object_key, op.ns)
  redis.call('ZADD', P .. ':by_version', op.version, op.key)
  redis.call('HSET', P .. ':uids', set.uid, op.key)
  redis.call('SADD', P .. ':kinds', op.kind)
  redis.call('ZADD', P .. ':list:' .. op.kind, 0, member)
  reindex_set(P, ':refs:', '', set.refs, op.key)
  reindex_set(P, ':owned:', '', set.own, op.key)
  reindex_claims(P, '', set.claims, op.key)
  reindex_demand(P, counted, set.demand or '')
  if op.kind == 'resourcequota' then reindex_quota(P, op, '', set.quota or '') end
  if op.kind ~= 'shoot' then
    note_follower(P, followed_shoot(op.kind, op.ns, op.name, set.refs or ''))
    return {'ok'}
  end
  local seed, reported, scheduler = set.seed or '', set.sseed or '', set.sched or ''
  move_usage(P, member, {}, seeds_of(seed, reported), groups.NONE, {rq = set.rq or '', grp = set.grp or ''})
  move_migrating(P, member, false, is_migrating(seed, reported))
  if is_followed(P, op) then redis.call('HSET', object_key, 'fol', '1') end
  count_shoot(P, object_key, op.ns, op.name)
  if scheduler ~= '' then redis.call('SADD', P .. ':schedulers', scheduler) end
  if seed == '' and scheduler ~= '' and (set.del or '') == '' then redis.call('SADD', P .. ':pending:' .. scheduler, member) end
  return {'ok'}
end

-- Versions jump by this much with a restore: above those of every opening since the backup, which are its epochs too.
local RESTORE_LEAP = 1000000000

local function set_hash(P, name, flat)
  redis.call('DEL', P .. ':' .. name)
  for i = 1, #flat, 2 do redis.call('HSET', P .. ':' .. name, from_hex(flat[i]), from_hex(flat[i + 1])) end
end

-- Ends a restore: the small state, what owners that are gone leave behind, and the note of what was lost. A relay announces
-- all of it again, as `relay` says that everything from version 1 on was restored. A server that was promoted meanwhile may
-- lack records that the one before it has taken: then nothing is done.
local function restore_finish(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not restores(P, op) then return {'other'} end
  local objects, removals = redis.call('ZCARD', P .. ':by_version'), redis.call('ZCARD', P .. ':graves')
  if objects < op.objects or removals < op.removals then return {'incomplete', objects, removals} end
  for i, name in ipairs(NUMBERS) do
    redis.call('SET', P .. ':' .. name, whole(math.max(counter(P, name), tonumber(op.numbers[i]))))
  end
  redis.call('INCRBY', P .. ':version', RESTORE_LEAP)
  for i, name in ipairs(HASHES) do set_hash(P, name, op.hashes[i]) end
  redis.call('HSET', P .. ':relay', 'restored', '0.1')
  local history = read_history(P, op.put_back)
  if history then -- what waited in this stream was put back: none of it is lost
    history.acknowledged = math.max(history.acknowledged or 0, history.last)
    keep_history(P, op.put_back, history)
  end
  redis.call('DEL', P .. ':losses', P .. ':outbox')
  for _, loss in ipairs(op.losses) do redis.call('RPUSH', P .. ':losses', loss) end
  note_loss(P, {stream = '', first = 0, last = 0, waiting = 0, since = op.taken_at, till = op.now, noticed_at = op.now,
                of_store = true})
  for _, owner in ipairs(op.owners) do
    if redis.call('HEXISTS', P .. ':uids', owner) == 0 then enqueue(P, 'garbage._.' .. owner) end
  end
  redis.call('SET', P .. ':recovery_due', 'it was restored from a backup of ' .. op.taken_at)
  redis.call('DEL', P .. ':restoring', P .. ':leader')
  return {'ok', objects, removals}
end

register('backup_page', backup_page, 'no-writes')
register('backup_changes', backup_changes, 'no-writes')
register('restore_begin', restore_begin)
register('restore_record', restore_record)
register('restore_finish', restore_finish)
