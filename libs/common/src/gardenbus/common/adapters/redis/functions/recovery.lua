-- Recovery of a store that was restored or rebuilt: what runs on seeds may be in no object of it, or elsewhere. Until the gardenlets
-- of all Seeds have reported what they run, and one lease period has passed, a shoot that was ordered before is bound nowhere, none
-- moves, and no seed passes for empty. Shoots ordered since go to seeds that have responded.
--
-- `P:recovery` has, while it lasts, `id` (of this recovery), `cause`, `at`, `floor` (orders up to this position were given before),
-- and `waited` once a lease period has passed; `P:recovery_seeds` has, by seed, `queried` or who lets the landscape go on without it.
-- A shoot that was ordered since has the id as its field `after`. `P:recovery_due` is the cause for the next opening.

-- exports: recovery_id, announce_seeds, record_recovery, ordered_after, recovery_rejection, silent_seeds

local LAST_DOCUMENT = 2147483647 -- of a message; a request with a response counts as one after it

-- The id of the recovery that lasts, or nil.
function recovery_id(P)
  return redis.call('HGET', P .. ':recovery', 'id') or nil
end

-- The position up to which orders were given before: whatever the histories of REQUESTS or the stream itself have seen.
local function order_floor(P, requests)
  local text = redis.call('HGET', P .. ':streams', requests.stream)
  local history = text and cmsgpack.unpack(text) or {incarnation = requests.created, created = requests.created, last = 0}
  local last = history.created == requests.created and math.max(history.last, requests.last) or history.last
  return history.incarnation .. string.format('.%020.0f.%010.0f', last, LAST_DOCUMENT)
end

function announce_seeds(P, is_wanted)
  for _, member in ipairs(redis.call('ZRANGE', P .. ':list:seed', 0, -1)) do
    local name = string.match(member, '/(.*)$')
    if is_wanted(name) then
      local seed = read_fields(P .. ':o:seed:_:' .. name, {'ver', 'uid'})
      announce(P, 'seed:_:' .. name, seed.ver, seed.uid, 'modified', true, '')
    end
  end
end

-- Longest time without a relay after which the data of a server that starts still pass for its latest: of a copy of both servers'
-- disks nothing but its age shows that it is one.
local LATEST_SECONDS = 15

-- Records the beginning or the end of a recovery, on the Namespace `garden`.
function record_recovery(P, reason, message, now)
  record_event(P, {key = 'namespace:_:garden', uid = '', type = 'Warning', reason = reason, message = message, by = 'relay',
                   action = 'Restore', now = now})
end

-- Begins a recovery with an opening, if there is a cause: its token is the id. Each Seed is announced with it. `silence`: seconds
-- since a relay led the open store.
begin_recovery = function(P, op, silence)
  local cause = redis.call('GET', P .. ':recovery_due') or op.cause
  if cause == '' and silence > LATEST_SECONDS then
    cause = 'no relay has led it for ' .. whole(silence) .. ' s: it may be an older copy'
  end
  if cause == '' then return end
  redis.call('DEL', P .. ':recovery', P .. ':recovery_seeds', P .. ':recovery_due')
  redis.call('HSET', P .. ':recovery', 'id', op.token, 'cause', cause, 'at', op.now, 'floor', order_floor(P, op.requests))
  announce_seeds(P, function() return true end)
  record_recovery(P, 'RecoveryStarted', 'The store went back (' .. cause .. '): until all seeds have reported what they run, shoots that '
    .. 'were ordered before are not placed, none moves, and no seed is removed', op.now)
end

-- The mark of a new shoot that was ordered since the recovery began, or nil.
function ordered_after(P, origin)
  local found = read_once('HMGET', P .. ':recovery', 'id', 'floor')
  if found[1] and (origin == '' or origin > found[2]) then return found[1] end
end

-- Reason for which a shoot with the mark `after` may not be bound to a seed now, or nil.
function recovery_rejection(P, after, seed)
  local id = recovery_id(P)
  if not id then return end
  if after ~= id then return 'recovering' end
  if redis.call('HEXISTS', P .. ':recovery_seeds', seed) == 0 then return 'seed-silent' end
end

-- The Seeds that have not responded yet.
function silent_seeds(P)
  local silent = {}
  for _, member in ipairs(redis.call('ZRANGE', P .. ':list:seed', 0, -1)) do
    local name = string.match(member, '/(.*)$')
    if redis.call('HEXISTS', P .. ':recovery_seeds', name) == 0 then silent[#silent + 1] = name end
  end
  return silent
end
