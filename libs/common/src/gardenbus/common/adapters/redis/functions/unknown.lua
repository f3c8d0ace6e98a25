-- Objects that run on a seed, where the store neither has them nor remembers that they left: kept here until somebody
-- decides on them. `P:unknown` has, for `<seed> <key>`, what its agent has sent of each as JSON.

-- exports: note_unknown, is_accounted_for, unknown, drop_unknown

-- The agents of all seeds share UNKNOWN_MAX places; when these are taken each seed still has UNKNOWN_SHARE of its own.

local UNKNOWN_MAX, UNKNOWN_SHARE = 1000, 50

local function has_place(P, seed)
  if redis.call('HLEN', P .. ':unknown') < UNKNOWN_MAX then return true end
  local own = 0
  for _, field in ipairs(redis.call('HKEYS', P .. ':unknown')) do
    if string.match(field, '^%S+') == seed then own = own + 1 end
  end
  return own < UNKNOWN_SHARE
end

-- `once`: what is noted already stays.
function note_unknown(P, op, once)
  local field = op.left .. ' ' .. op.key
  local is_noted = redis.call('HEXISTS', P .. ':unknown', field) == 1
  if op.held == '' or once and is_noted then return end
  if is_noted or has_place(P, op.left) then
    redis.call('HSET', P .. ':unknown', field, op.held)
    unknown_index = nil
    if not is_noted and string.sub(op.key, 1, 6) == 'shoot:' then change_usage(P, op.left, false) end
  end
end

-- Whether the store has, or remembers, what runs on a seed (with its key, kind, ns, name and uid).
function is_accounted_for(P, item, seed)
  if redis.call('EXISTS', P .. ':o:' .. item.key) == 1 then return is_settled(P, item, seed, item.uid) end
  local dead = read_fields(P .. ':dead:' .. item.key, {'ver', 'uid', 'prior'})
  return dead.ver ~= '' and (item.uid == dead.uid or is_among(dead.prior, item.uid))
end

-- Those that are still unknown, without their manifests, or of them that of `op.field` with it: what was ordered anew on
-- the same seed is not.
function unknown(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local found, reply = {}, {'ok'}
  if op.field then
    local held = redis.call('HGET', P .. ':unknown', op.field)
    if held then found = {op.field, held} end
  else
    found = redis.call('HGETALL', P .. ':unknown')
  end
  for i = 1, #found, 2 do
    local seed, kind, ns, name = string.match(found[i], '^(%S+) ([^:]*):([^:]*):(.*)$')
    local at = {key = string.match(found[i], ' (.*)$'), kind = kind, ns = ns, name = name}
    local held = cjson.decode(found[i + 1])
    if not is_settled(P, at, seed, held.uid) then
      local is_adoptable = next(held.manifest or {}) ~= nil
      local named = cjson.encode({uid = held.uid, is_adoptable = is_adoptable})
      reply[#reply + 1], reply[#reply + 2] = found[i], op.field and found[i + 1] or named
    end
  end
  return reply
end

-- Keeps nothing of it any more: its place is free, and the shoot may come to another seed.
function drop_unknown(P, seed, key)
  if redis.call('HDEL', P .. ':unknown', seed .. ' ' .. key) == 0 then return end
  unknown_index = nil
  if string.sub(key, 1, 6) ~= 'shoot:' then return end
  change_usage(P, seed, true)
  activate_schedulers(P)
end

-- Remembers that an object left a seed on which it is not stored, and announces that to the seed; once more where it is remembered.
local function forget(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  local object = read_fields(P .. ':o:' .. op.key, {'ver', 'uid', 'past'})
  if object.ver ~= '' then
    if op.uid == '' or is_settled(P, op, op.seed, op.uid) then return {'exists'} end
    redis.call('HSET', P .. ':o:' .. op.key, 'past', past_with(object.past, op.seed))
    drop_unknown(P, op.seed, op.key)
    announce(P, op.key, object.ver, object.uid, 'modified', true, op.seed)
    return {'ok'}
  end
  local dead = read_fields(P .. ':dead:' .. op.key, {'ver', 'uid', 'prior'})
  if op.uid == '' and dead.ver == '' and redis.call('HEXISTS', P .. ':unknown', op.seed .. ' ' .. op.key) == 0 then
    return {'gone'}
  end
  if is_among(dead.prior, op.uid) then dead.uid = op.uid end
  if op.uid ~= '' and op.uid ~= dead.uid or dead.ver == '' then
    local prior = prior_uids(P, op.key, op.uid)
    dead = {ver = redis.call('INCR', P .. ':version'), uid = op.uid}
    write_fields(P .. ':dead:' .. op.key, {uid = dead.uid, ver = whole(dead.ver), at = op.now, left = op.seed, prior = prior})
    redis.call('ZADD', P .. ':graves', dead.ver, op.key)
  end
  drop_unknown(P, op.seed, op.key)
  announce(P, op.key, dead.ver, dead.uid, 'deleted', true, op.seed)
  return {'ok'}
end

register('unknown', unknown, 'no-writes')
register('forget', forget)
