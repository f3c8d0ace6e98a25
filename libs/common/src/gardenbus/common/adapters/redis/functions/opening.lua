-- Permission to read and write: none before a relay has opened the store, one relay at a time, and the latest of a seed's gardenlets.
--
-- A relay opens a store when it has compared it with the bus, and writes `P:opening`: the format of the data, the version
-- that the store was opened at, and a token that nobody else has had. That version is the epoch of a master: a replica that
-- is promoted has to be opened, and gets a higher one than the master of before ever had (openings.py). A library accepts writes where the stored opening is one in its memory. Its memory is lost with
-- every start of Redis, every load of a whole data set (a replica's too) and every removal of the library; the stored
-- opening goes when a store is emptied. So nothing is written to a store that went back before a relay has compared it.
--
-- Several versions of the library stand side by side, each with its own memory. One that was loaded later `join`s: in
-- one transaction the others vouch for the opening in their memory, with a nonce of that transaction, which it trusts.
-- `vouch` and `uses` are the interface between versions: their names, arguments and replies never change.

-- exports: FORMAT, is_open, reject_newer, reject_when_closed, led, holds_lead, leads, begin_recovery

-- The format of what lies below P. It is raised when an older library would break, or misread, what this one writes (an
-- index that each write must keep, a new meaning of a field); then the older ones are shut out as soon as a relay of the
-- newer version opens the store.
FORMAT = 7 -- since each write counts groups of shoots, and those that place one are fenced by them (groups.lua)

-- Remembered openings, and the latest of each place (database and prefix): an older one is not accepted again.
local opened, latest = {}, {}

local function remember(place, opening)
  if latest[place] then opened[latest[place]] = nil end
  latest[place], opened[opening] = opening, true
end

function is_open(P)
  local opening = redis.call('GET', P .. ':opening')
  return opening and opened[opening] or false
end

local function format_of(opening)
  return opening and tonumber(string.match(opening, '^(%d+)%.'))
end

-- A reply, when a newer library has written what this one does not understand.
function reject_newer(P)
  local found = format_of(redis.call('GET', P .. ':opening'))
  if found and found > FORMAT then return {'format', found, FORMAT} end
end

function reject_when_closed(P, outbox_max)
  if not is_open(P) then return reject_newer(P) or {'fenced'} end
  if outbox_max and redis.call('XLEN', P .. ':outbox') >= outbox_max then return {'full-outbox'} end
end

-- Tells whether what is read is all there is: an emptied store has nothing, until a relay has brought it back.
local function check_open(keys, args)
  return reject_when_closed(keys[1]) or {'ok', redis.call('GET', keys[1] .. ':opening')}
end

-- Vouches, if the store is open, to the library that joins in this transaction (by its nonce ARGV[1]).
local function vouch(keys, args)
  if not is_open(keys[1]) then return 0 end
  redis.call('SET', keys[1] .. ':vouched', args[1], 'PX', 1000)
  return 1
end

-- Remembers an opening that another library has vouched for; returns whether the store is open, and whether that is new.
local function join(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local rejected = reject_newer(P)
  if rejected then return rejected end
  local was_open, opening = is_open(P), redis.call('GET', P .. ':opening')
  if not was_open and format_of(opening) == FORMAT and redis.call('GET', P .. ':vouched') == op.nonce then
    remember(op.db .. ' ' .. P, opening)
  end
  redis.call('DEL', P .. ':vouched')
  return {'ok', is_open(P) and 1 or 0, is_open(P) and not was_open and 1 or 0}
end

-- Who took the lead here, in this library's memory, and which opening there was then. A lead ends with the life of Redis in
-- which it was taken, though the key comes back with the data: a relay must not note in a store that went back what it has
-- found out about the one before. It ends as well where another opening has come with the data: that of a master which led in
-- between, while this library's memory stayed (a planned failover, and one back). So what a store has that was not compared
-- with the bus yet is read and noted by a relay that has learned so, as it took the lead.
led = {}

local function opening_of(P)
  return redis.call('GET', P .. ':opening') or ''
end

function holds_lead(P, leader)
  return redis.call('GET', P .. ':leader') == leader
end

function leads(P, leader)
  return holds_lead(P, leader) and led[P .. ' ' .. leader] == opening_of(P)
end

-- Takes or keeps the lead; returns whether nobody else has led since the last time, and all is as this leader left it.
local function take_lead(P, op)
  if is_open(P) then redis.call('SET', P .. ':alive', redis.call('TIME')[1]) end
  local is_continued = led[P .. ' ' .. op.leader] == opening_of(P) and redis.call('GET', P .. ':led') == op.leader
  redis.call('SET', P .. ':leader', op.leader, 'PX', op.ttl_ms)
  if not is_continued then
    redis.call('SET', P .. ':led', op.leader)
    led[P .. ' ' .. op.leader] = opening_of(P)
  end
  return is_continued
end

local function lead(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local rejected = reject_newer(P)
  if rejected then return rejected end
  local leader = redis.call('GET', P .. ':leader')
  if leader and leader ~= op.leader then return {'other', leader} end
  local restoring = redis.call('GET', P .. ':restoring')
  if restoring then return {'restoring', restoring} end
  local is_continued = take_lead(P, op)
  return {'ok', is_open(P) and 1 or 0, is_continued and 1 or 0}
end

local function resign(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if holds_lead(P, op.leader) then redis.call('DEL', P .. ':leader') end
  led[P .. ' ' .. op.leader] = nil
  return {'ok'}
end

-- Begins a recovery with the opening (recovery.lua).

local function open_fence(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local rejected = reject_newer(P)
  if rejected then return rejected end
  if not is_open(P) then
    local silence = redis.call('TIME')[1] - (redis.call('GET', P .. ':alive') or redis.call('TIME')[1])
    -- The floor is of the time: a copy that is opened twice must not give out again what was read and is lost.
    local version = whole(math.max(math.max(counter(P, 'version'), op.version, op.epoch or 0) + op.leap, op.floor))
    local opening = FORMAT .. '.' .. version .. '.' .. op.token
    redis.call('SET', P .. ':version', version)
    redis.call('SET', P .. ':usage_version', whole(math.max(counter(P, 'usage_version') + op.leap, op.floor)))
    redis.call('SET', P .. ':gain_objects', whole(math.max(counter(P, 'gain_objects'), op.unblock_index)))
    redis.call('SET', P .. ':opening', opening)
    led[P .. ' ' .. op.leader] = opening
    remember(op.db .. ' ' .. P, opening)
    begin_recovery(P, op, silence)
  end
  return {'ok', counter(P, 'version')}
end

-- The opening of a store, if a master of a later epoch than its own has been opened since.
local function older_opening(P, epoch)
  local opening = redis.call('GET', P .. ':opening')
  local own = opening and tonumber(string.match(opening, '^%d+%.(%d+)%.') or '0')
  return own and own < epoch and opening
end

-- Closes the store of a server that was master before the one with this epoch: all versions of the library find it closed.
-- What it has is replaced when it becomes a replica.
local function retire(keys, args)
  local P = keys[1]
  if not older_opening(P, cmsgpack.unpack(args[1]).epoch) then return {'ok', 0} end
  redis.call('DEL', P .. ':opening')
  return {'ok', 1}
end

-- The same without a write, of which a master whose replicas have left accepts none (min-replicas-to-write): this version of
-- the library finds the store closed, and so nobody reads there what is behind the master of now.
local function forget_opening(keys, args)
  local opening = older_opening(keys[1], cmsgpack.unpack(args[1]).epoch)
  if not opening then return {'ok', 0} end
  opened[opening] = nil
  return {'ok', 1}
end

local function accept_fence(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local fences = redis.call('HMGET', P .. ':fences', op.seed, op.seed .. '/void')
  local highest, void = fences[1], fences[2]
  if op.number == void then return {'ok', 0} end
  if highest and op.number < highest then
    if op.last == '' or highest <= op.last or op.number > op.last then return {'ok', 0} end
    redis.call('HSET', P .. ':fences', op.seed .. '/void', highest) -- LEASES went back: it cannot have given that out
  end
  if highest ~= op.number then redis.call('HSET', P .. ':fences', op.seed, op.number) end
  return {'ok', 1}
end

local function has_fence(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  return {'ok', redis.call('HEXISTS', P .. ':fences', op.seed)}
end

register('join', join, 'allow-oom')
register('lead', lead, 'allow-oom')
register('resign', resign, 'allow-oom')
register('open', open_fence, 'allow-oom')
register('retire', retire, 'allow-oom')
register('forget_opening', forget_opening, 'no-writes')
register('accept_fence', accept_fence)
register('is_fenced', has_fence, 'no-writes')
register('check_open', check_open, 'no-writes')
register_unnoticed('vouch', vouch, 'allow-oom')
