-- How many shoots are in which state, and which of them are busy: `states` and `busy`, kept with every write of a shoot.
--
-- The state is that of the deletion, else of what the scheduler found, else of status.lastOperation, which the writer sends
-- as the field `op` (api/garden/busy_shoots.py): "<state> created|deleted|updated <last update>", '' without an operation.
-- The field `cnt` has what a shoot is counted as: its state, and the beginning of its operation while it is busy. A shoot
-- without it was written before there was this index.

-- exports: move_shoot_count, count_shoot, uncount_shoot

local COUNTED = {'created', 'del', 'pend', 'seed', 'op', 'cnt'}

-- The beginning of an operation: at the latest its last update.
local function began_at(shoot, start, updated)
  if start == 'created' then return shoot.created end
  if start == 'deleted' and shoot.del ~= '' then return shoot.del end
  return updated ~= '' and updated or shoot.created
end

local function counted_as(shoot)
  local state, start, updated = string.match(shoot.op, '^(%S+) (%S+) (%S*)$')
  if shoot.pend ~= '' then state, start, updated = 'pending', 'created', '' end
  if not state then state, start, updated = 'new', 'updated', '' end
  if shoot.del ~= '' then state = 'deleting' end
  if shoot.seed ~= '' and (state == 'succeeded' or state == 'new') then return state end
  return state .. ' ' .. began_at(shoot, start, updated)
end

-- Moves a shoot from what it was counted as to what it is counted as now ('': not at all).
local function move_count(P, ns, name, before, after)
  if before == after then return end
  local member = ' ' .. ns .. ' ' .. name
  local old, began = string.match(before, '^(%S+) ?(.*)$')
  local new, begins = string.match(after, '^(%S+) ?(.*)$')
  if old ~= new then
    if old then redis.call('HINCRBY', P .. ':states', old, -1) end
    if new then redis.call('HINCRBY', P .. ':states', new, 1) end
  end
  if began ~= begins then
    if began and began ~= '' then redis.call('ZREM', P .. ':busy', began .. member) end
    if begins and begins ~= '' then redis.call('ZADD', P .. ':busy', 0, begins .. member) end
  end
end

-- Counts a shoot that is about to have these fields (COUNTED, with the `cnt` of before); returns the `cnt` to write with them.
function move_shoot_count(P, ns, name, shoot)
  local after = counted_as(shoot)
  move_count(P, ns, name, shoot.cnt, after)
  return after
end

-- Counts a shoot as it is stored now.
function count_shoot(P, object_key, ns, name)
  local shoot = read_fields(object_key, COUNTED)
  local after = move_shoot_count(P, ns, name, shoot)
  if after ~= shoot.cnt then redis.call('HSET', object_key, 'cnt', after) end
end

-- Counts a shoot no longer; to be called before its fields are removed.
function uncount_shoot(P, object_key, ns, name)
  move_count(P, ns, name, redis.call('HGET', object_key, 'cnt') or '', '')
end

local function uncounted(P)
  local left = redis.call('ZCARD', P .. ':list:shoot')
  for _, count in ipairs(redis.call('HVALS', P .. ':states')) do left = left - tonumber(count) end
  return left
end

-- Shoots by state, the number of busy ones and the first of them, and how many shoots are not in the index yet.
local function shoot_counts(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  return {redis.call('HGETALL', P .. ':states'), redis.call('ZCARD', P .. ':busy'),
          redis.call('ZRANGE', P .. ':busy', 0, op.limit - 1), uncounted(P)}
end

-- Of some shoots after "<ns>/<name>" the last (''; none is left), and those that are in no index: each with its status.
local function uncounted_shoots(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local reply = {''}
  if uncounted(P) == 0 then return reply end
  local first = op.after ~= '' and '(' .. op.after or '-'
  for _, member in ipairs(redis.call('ZRANGEBYLEX', P .. ':list:shoot', first, '+', 'LIMIT', 0, op.limit)) do
    reply[1] = member
    local object_key = P .. ':o:shoot:' .. string.gsub(member, '/', ':', 1)
    if redis.call('HEXISTS', object_key, 'cnt') == 0 then
      reply[#reply + 1], reply[#reply + 2] = member, redis.call('HGET', object_key, 'status') or ''
    end
  end
  return reply
end

-- Counts shoots that were in no index when they were read; one that was written since is in it.
local function count_shoots(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  for _, shoot in ipairs(op.items) do
    local object_key = P .. ':o:shoot:' .. shoot.ns .. ':' .. shoot.name
    local found = redis.call('HMGET', object_key, 'ver', 'cnt')
    if found[1] and not found[2] then
      if shoot.op ~= '' then redis.call('HSET', object_key, 'op', shoot.op) end
      count_shoot(P, object_key, shoot.ns, shoot.name)
    end
  end
  return {'ok'}
end

register('shoot_counts', shoot_counts, 'no-writes')
register('uncounted_shoots', uncounted_shoots, 'no-writes')
register('count_shoots', count_shoots)
