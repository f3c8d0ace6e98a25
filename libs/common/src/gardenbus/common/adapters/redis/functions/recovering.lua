-- The course of a recovery (recovery.lua): seeds answer, an operator lets the landscape go on without some, and it ends.

-- State of the recovery: the fields of `P:recovery` and `P:recovery_seeds`, and the silent Seeds. {'none'}: there is none.
local function recovery_reply(P)
  if not recovery_id(P) then return {'none'} end
  return {'ok', redis.call('HGETALL', P .. ':recovery'), redis.call('HGETALL', P .. ':recovery_seeds'), silent_seeds(P)}
end

local function recovery(keys, args)
  local P = keys[1]
  return reject_when_closed(P) or recovery_reply(P)
end

-- Whether the recovery keeps a shoot from every seed.
local function is_recovering(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local object, id = read_fields(P .. ':o:' .. op.key, {'ver', 'after'}), recovery_id(P)
  return {'ok', id and object.ver ~= '' and object.after ~= id and 1 or 0}
end

-- Has what waits tried again.
local function note_response(P)
  redis.call('INCR', P .. ':gain_usage')
  activate_schedulers(P)
end

-- Takes down what a seed runs: each that the store neither has there nor remembers is kept as unknown. The seed has responded once
-- all of them are. Another recovery's inventory was made before this one began, and says nothing of it.
local function inventory(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  if recovery_id(P) ~= op.id then return {'over', 0, 0} end
  local unknown, unnamed = 0, 0
  for _, item in ipairs(op.items) do
    if not is_accounted_for(P, item, op.seed) then
      note_unknown(P, {left = op.seed, key = item.key, held = item.held}, true)
      local is_noted = redis.call('HEXISTS', P .. ':unknown', op.seed .. ' ' .. item.key) == 1
      unknown, unnamed = unknown + 1, unnamed + (is_noted and 0 or 1)
    end
  end
  if unnamed == 0 and redis.call('HSET', P .. ':recovery_seeds', op.seed, 'queried') == 1 then note_response(P) end
  return {'ok', unknown, unnamed}
end

-- Lets the landscape go on without some Seeds, by an operator's word.
local function go_on_without(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  if not recovery_id(P) then return {'none'} end
  for _, seed in ipairs(op.seeds) do
    if redis.call('EXISTS', P .. ':o:seed:_:' .. seed) == 0 then return {'gone', seed} end
  end
  for _, seed in ipairs(op.seeds) do
    if redis.call('HSETNX', P .. ':recovery_seeds', seed, op.by) == 1 then note_response(P) end
  end
  return recovery_reply(P)
end

-- Ends the recovery if a lease period has passed (op.waited, or found before) and no Seed is silent; whatever waited is tried again.
-- With op.announces the silent ones are announced once more. Replies with what is left, or {'ended', ...} with what it was.
local function advance_recovery(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local id = recovery_id(P)
  if not id then return {'none'} end
  if op.waited == id then redis.call('HSET', P .. ':recovery', 'waited', '1') end
  local reply = recovery_reply(P)
  if #reply[4] == 0 and redis.call('HEXISTS', P .. ':recovery', 'waited') == 1 then
    redis.call('DEL', P .. ':recovery', P .. ':recovery_seeds')
    note_response(P)
    record_recovery(P, 'RecoveryFinished', 'All seeds have reported what they run: shoots are placed again', op.now)
    reply[1] = 'ended'
  elseif op.announces then
    announce_seeds(P, function(name) return redis.call('HEXISTS', P .. ':recovery_seeds', name) == 0 end)
  end
  return reply
end

register('recovery', recovery, 'no-writes')
register('is_recovering', is_recovering, 'no-writes')
register('inventory', inventory)
register('go_on_without', go_on_without)
register('advance_recovery', advance_recovery)
