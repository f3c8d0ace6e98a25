-- Who may write: nobody before a relay has opened the store, one relay at a time, and of a seed's gardenlets the latest.

-- The write fence: false after every start of Redis, whatever the disk brought back, until a relay has compared the
-- store with the bus and opened it.
local open = {}

local function refuse_when_closed(P, outbox_max)
  if not open[P] then return {'fenced'} end
  if outbox_max and redis.call('XLEN', P .. ':outbox') >= outbox_max then return {'full-outbox'} end
end

local function leads(P, leader)
  return redis.call('GET', P .. ':leader') == leader
end

local function lead(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local leader = redis.call('GET', P .. ':leader')
  if leader and leader ~= op.leader then return {'other', leader} end
  redis.call('SET', P .. ':leader', op.leader, 'PX', op.ttl_ms)
  return {'ok', open[P] and 1 or 0}
end

local function resign(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if leads(P, op.leader) then redis.call('DEL', P .. ':leader') end
  return {'ok'}
end

local function open_fence(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  if not open[P] then
    redis.call('SET', P .. ':version', whole(math.max(counter(P, 'version'), op.version) + op.leap))
    redis.call('SET', P .. ':gain_objects', whole(math.max(counter(P, 'gain_objects'), op.gain)))
    open[P] = true
  end
  return {'ok', counter(P, 'version')}
end

local function accept_fence(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P)
  if closed then return closed end
  local known = redis.call('HGET', P .. ':fences', op.seed)
  if known and op.number < known then return {'ok', 0} end
  if known ~= op.number then redis.call('HSET', P .. ':fences', op.seed, op.number) end
  return {'ok', 1}
end

register('lead', lead)
register('resign', resign)
register('open', open_fence)
register('accept_fence', accept_fence)
