-- Outbox entries: what must be announced, written along with the change itself.

-- exports: add_entry, announce, enqueue, queued, record_event, activate_schedulers

-- Adds an entry, with the trace that it belongs to.
function add_entry(P, ...)
  if carried == '' then return redis.call('XADD', P .. ':outbox', '*', ...) end
  local fields = {...}
  fields[#fields + 1], fields[#fields + 2] = 'tp', carried
  return redis.call('XADD', P .. ':outbox', '*', unpack(fields))
end

function announce(P, key, version, uid, verb, with_binding, left)
  add_entry(P, 'k', key, 'v', version, 'u', uid, 'a', verb,
            'b', with_binding and '1' or '', 'l', left or '', 'g', counter(P, 'gain_objects'))
end

function enqueue(P, tail)
  add_entry(P, 'q', tail)
end

-- Functions of shoots that wait in a queue; some of them in unschedulable.lua.
queued = {}

-- The place of a shoot in the queue of its scheduler: a band other than the middle one is a token of its own.
function queued.tail(scheduler, band, ns, name)
  return 'scheduling.' .. scheduler .. (band and band ~= '' and '.' .. band or '') .. '.' .. ns .. '.' .. name
end

local EVENT_SECONDS, ANNOUNCED_EVERY = 600, 64

-- A count that is announced: 1, 2, 4 ... 64, and each 64th. With one Event in EVENT_SECONDS that is twice a day at least.
local function is_announced(count)
  return bit.band(count, count - 1) == 0 and count <= ANNOUNCED_EVERY or count % ANNOUNCED_EVERY == 0
end

-- Counts an Event, and announces some of its counts. With `series` its message may be another each time.
function record_event(P, event)
  local text = event.key .. '\n' .. event.uid .. '\n' .. event.reason .. '\n'
  local id = redis.sha1hex(event.series and text .. event.by or text .. event.message)
  local seen = P .. ':event:' .. id
  local count = redis.call('HINCRBY', seen, 'count', 1)
  if count == 1 then redis.call('HSET', seen, 'first', event.now) end
  redis.call('EXPIRE', seen, EVENT_SECONDS)
  if not is_announced(count) then return end
  redis.call('XADD', P .. ':outbox', '*', 'e', event.key, 'u', event.uid, 'id', id, 't', event.type, 'r', event.reason,
             'm', event.message, 'by', event.by, 'ac', event.action or '', 'n', count, 'at', event.now,
             'first', redis.call('HGET', seen, 'first') or event.now)
end

function activate_schedulers(P)
  for _, scheduler in ipairs(redis.call('SMEMBERS', P .. ':waiting')) do
    enqueue(P, 'waking._.' .. scheduler)
  end
end

local function note_event(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  record_event(P, op)
  return {'ok'}
end

register('event', note_event)
