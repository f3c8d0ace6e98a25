-- Objects that run on a seed, and that the store neither has nor remembers: kept here until somebody decides on them.
-- `P:unknown` has, for `<seed> <key>`, what its agent has sent of each as JSON.

local UNKNOWN_MAX = 1000

local function note_unknown(P, op)
  local field = op.left .. ' ' .. op.key
  if op.held == '' then return end
  if redis.call('HLEN', P .. ':unknown') < UNKNOWN_MAX or redis.call('HEXISTS', P .. ':unknown', field) == 1 then
    redis.call('HSET', P .. ':unknown', field, op.held)
  end
end

-- Those that are still unknown: what was ordered anew under the same name is not.
local function unknown(keys, args)
  local P = keys[1]
  local closed = refuse_when_closed(P)
  if closed then return closed end
  local found, reply = redis.call('HGETALL', P .. ':unknown'), {'ok'}
  for i = 1, #found, 2 do
    local key = string.match(found[i], ' (.*)$')
    if redis.call('EXISTS', P .. ':o:' .. key) == 0 then
      reply[#reply + 1], reply[#reply + 2] = found[i], found[i + 1]
    end
  end
  return reply
end

-- Remembers the removal of an object that is not stored, and tells the seed; once more where it is remembered already.
local function forget(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  if redis.call('EXISTS', P .. ':o:' .. op.key) == 1 then return {'exists'} end
  local dead = read_fields(P .. ':dead:' .. op.key, {'ver', 'uid'})
  if op.uid == '' and dead.ver == '' then return {'gone'} end
  if op.uid ~= '' and op.uid ~= dead.uid then
    dead = {ver = redis.call('INCR', P .. ':version'), uid = op.uid}
    redis.call('HSET', P .. ':dead:' .. op.key, 'uid', dead.uid, 'ver', dead.ver, 'at', op.now, 'left', op.seed)
    redis.call('ZADD', P .. ':graves', dead.ver, op.key)
  end
  redis.call('HDEL', P .. ':unknown', op.seed .. ' ' .. op.key)
  announce(P, op.key, dead.ver, dead.uid, 'deleted', true, op.seed)
  return {'ok'}
end

register('unknown', unknown, 'no-writes')
register('forget', forget)
