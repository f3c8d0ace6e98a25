-- What is remembered of streams, so that one that went back is noticed (ports/stream_history.py). Incarnations and
-- `created` are texts of 20 digits: they exceed what a Lua number holds exactly. Times are microseconds, but for those of
-- `P:losses`: what streams or the store have lost, one JSON text each.

-- exports: note_loss, read_history, keep_history

local LOSSES_MAX = 64

function note_loss(P, loss)
  redis.call('RPUSH', P .. ':losses', cjson.encode(loss))
  redis.call('LTRIM', P .. ':losses', -LOSSES_MAX, -1)
end

function read_history(P, stream)
  local text = redis.call('HGET', P .. ':streams', stream)
  return text and cmsgpack.unpack(text)
end

local function extent(history)
  return {history.incarnation, history.sequence, history.at, history.last, history.acknowledged or 0}
end

local function is_same(extent_a, extent_b)
  for i = 1, #extent_a do
    if extent_a[i] ~= extent_b[i] then return false end
  end
  return true
end

local function begin_history(created)
  return {created = created, incarnation = created, previous = created, start = 0, ended_at = 0, sequence = 0, at = 0,
          last = 0}
end

-- Raises the incarnation to `proposed`, or to one more where the clock is behind; what stood from `start` on is lost.
local function raise_incarnation(P, op, history, proposed, start)
  local incarnation, first = history.incarnation, math.max(start, 1)
  if history.last >= first then
    local acknowledged = math.max(history.acknowledged or 0, first - 1)
    note_loss(P, {stream = op.stream, first = first, last = history.last, waiting = history.last - acknowledged,
                  since = op.ended_at or '', till = history.seen_at or '', noticed_at = op.now, of_store = false})
  end
  if proposed <= incarnation then
    proposed = string.sub(incarnation, 1, 11) .. string.format('%09d', tonumber(string.sub(incarnation, 12)) + 1)
  end
  history.previous, history.incarnation = incarnation, proposed
  history.start, history.ended_at = start, history.at
  history.sequence, history.at, history.last, history.acknowledged = 0, 0, 0, 0
end

-- The lowest sequence that was seen before with an older message, or nil. Entries are pairs of sequence and time.
local function contradiction(history, entries)
  local lowest
  for i = 1, #entries, 2 do
    local sequence, at = entries[i], entries[i + 1]
    if sequence <= history.sequence and at > history.at and (not lowest or sequence < lowest) then lowest = sequence end
  end
  return lowest
end

local function advance(history, op, entries, last)
  local before = history.last
  for i = 1, #entries, 2 do
    local sequence, at = entries[i], entries[i + 1]
    if sequence >= history.start or at > history.ended_at then
      history.sequence, history.at = math.max(history.sequence, sequence), math.max(history.at, at)
    end
  end
  history.last = math.max(history.last, history.sequence, last)
  if history.last ~= before then history.seen_at = op.now end
  history.acknowledged = math.max(history.acknowledged or 0, op.acknowledged or 0)
end

function keep_history(P, stream, history)
  redis.call('HSET', P .. ':streams', stream, cmsgpack.pack(history))
end

local function history_reply(history)
  return {'ok', history.created, history.incarnation, history.previous, whole(history.start), whole(history.ended_at),
          whole(history.last), whole(history.sequence)}
end

local function observe_stream(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local history = read_history(P, op.stream)
  local before = history and extent(history)
  if not history then
    history = begin_history(op.created)
  elseif op.created < history.created then
    return history_reply(history)
  elseif op.created > history.created then
    raise_incarnation(P, op, history, op.created, 0)
    history.created = op.created
  else
    local lowest = contradiction(history, op.entries)
    if lowest then raise_incarnation(P, op, history, op.proposed, lowest) end
  end
  advance(history, op, op.entries, op.last)
  if not before or not is_same(before, extent(history)) then keep_history(P, op.stream, history) end
  return history_reply(history)
end

local function restart_stream(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local history = read_history(P, op.stream)
  if not history then
    history = begin_history(op.created)
  elseif history.incarnation == op.seen then
    raise_incarnation(P, op, history, op.proposed, op.last + 1)
    history.created = op.created
  end
  advance(history, op, {}, op.last)
  keep_history(P, op.stream, history)
  return history_reply(history)
end

-- Compares a store that is about to be opened with the acknowledgements of a stream: what it has not seen was carried out
-- in a store that is lost.
local function compare_stream(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local history = read_history(P, op.stream)
  local recorded = 0
  if history then
    if history.created ~= op.created then return {'ok', 0} end
    recorded = math.max(history.sequence, history.acknowledged or 0)
  end
  if op.acknowledged <= recorded then return {'ok', 0} end
  history = history or begin_history(op.created)
  note_loss(P, {stream = op.stream, first = recorded + 1, last = op.acknowledged, waiting = 0, since = history.seen_at or '',
                till = op.now, noticed_at = op.now, of_store = true})
  history.sequence, history.acknowledged = op.acknowledged, op.acknowledged
  advance(history, op, {}, op.acknowledged)
  keep_history(P, op.stream, history)
  return {'ok', 1}
end

local function losses(keys, args)
  return redis.call('LRANGE', keys[1] .. ':losses', 0, -1)
end

-- Records the Event about a loss, once.
local function report_loss(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  if redis.call('HSETNX', P .. ':losses_reported', op.id, op.now) == 0 then return {'known'} end
  record_event(P, op)
  return {'ok'}
end

register('compare_stream', compare_stream)
register('losses', losses, 'no-writes')
register('report_loss', report_loss)
register('observe_stream', observe_stream)
register('restart_stream', restart_stream)
