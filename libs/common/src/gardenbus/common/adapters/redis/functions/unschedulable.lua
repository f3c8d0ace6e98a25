-- Unschedulable shoots: kept in equivalence classes, and activated when an unblock index advances.

-- exports: stop_waiting, waiting

function stop_waiting(P, object_key, scheduler, member)
  local stored = read_fields(object_key, {'class', 'grp'})
  local class = stored.class
  if class == '' then return end
  groups.await(P, member, stored.grp, 'SREM')
  local waiting = P .. ':waiting:' .. scheduler
  redis.call('ZREM', waiting .. ':' .. class, member)
  if redis.call('EXISTS', waiting .. ':' .. class) == 0 then
    redis.call('HDEL', waiting, class)
    if redis.call('EXISTS', waiting) == 0 then redis.call('SREM', P .. ':waiting', scheduler) end
  end
  redis.call('HDEL', object_key, 'class', 'tp')
end

-- Start of the pending operation of a shoot: its first failure, whatever the reason is by now.
function queued.since(object_key)
  local before = redis.call('HGET', object_key, 'pend') or ''
  return string.match(before, '"startTime":"([^"\\]*)"$') or string.match(before, '"lastUpdateTime":"([^"\\]*)"$')
end

-- The pending operation of a shoot, with the start of the one that it replaces: a shoot waits since its first failure,
-- whatever the reason is by now.
function queued.since_first_failure(object_key, pending)
  local started = queued.since(object_key)
  if not started then return pending end
  return (string.gsub(pending, '"startTime":"[^"\\]*"$', function() return '"startTime":"' .. started .. '"' end))
end

local UNSCHEDULABLE = {'ver', 'uid', 'gen', 'del', 'seed', 'sched', 'class', 'pmsg', 'tries', 'tried', 'tp', 'grp'}

local function mark_one(P, item, unblock_objects, unblock_usage)
  local key = 'shoot:' .. item.ns .. ':' .. item.name
  local object_key, member = P .. ':o:' .. key, item.ns .. '/' .. item.name
  local object = read_fields(object_key, UNSCHEDULABLE)
  if object.ver == '' or object.uid ~= item.uid or object.del ~= '' or object.seed ~= ''
     or tonumber(object.gen) ~= item.gen or object.sched ~= item.sched then return {'done', 0} end
  if unblock_objects > item.seen_objects or unblock_usage ~= item.seen_usage
     or item.groups and groups.have_changed(P, item.ns, object.grp, item.groups) then return {'again', 0} end

  local attempts = object.tried == object.gen and tonumber(object.tries) + 1 or 1
  if object.class ~= item.class then stop_waiting(P, object_key, object.sched, member) end
  local waiting = P .. ':waiting:' .. item.sched
  redis.call('SADD', P .. ':waiting', item.sched)
  groups.await(P, member, object.grp, 'SADD')
  redis.call('HSET', waiting, item.class, item.descriptor)
  redis.call('ZADD', waiting .. ':' .. item.class, unblock_objects + unblock_usage, member)
  redis.call('HSET', object_key, 'class', item.class, 'tries', attempts, 'tried', item.gen)
  if item.trace then redis.call('HSET', object_key, 'tp', item.trace)
  elseif object.tp ~= '' then redis.call('HDEL', object_key, 'tp') end
  if object.pmsg ~= item.message then
    local version = next_version(P, key)
    redis.call('HSET', object_key, 'ver', version, 'pend', queued.since_first_failure(object_key, item.pending),
               'pmsg', item.message)
    count_shoot(P, object_key, item.ns, item.name)
    announce(P, key, version, object.uid, 'modified', false, '')
    record_event(P, {key = key, uid = object.uid, type = 'Warning', reason = 'SchedulingFailed', series = true,
                     message = item.message, by = item.by, action = 'Reconcile', now = item.now})
  end
  return {'parked', attempts}
end

-- Marks up to 100 shoots unschedulable, unless an unblock index has advanced since their snapshot.
local function mark_unschedulable(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  local unblock_objects, unblock_usage = counter(P, 'gain_objects'), counter(P, 'gain_usage')
  local outcomes = {}
  for i, item in ipairs(op.items) do outcomes[i] = mark_one(P, item, unblock_objects, unblock_usage) end
  return {'ok', outcomes, usage_reply(P, op.since)}
end

-- Activates up to op.limit shoots of a class that were marked before the latest unblock, each with its trace.
local function unblock(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  local class = P .. ':waiting:' .. op.sched .. ':' .. op.class
  local members = redis.call('ZRANGEBYSCORE', class, '-inf', '(' .. total_unblock_index(P), 'LIMIT', 0, op.limit)
  for _, member in ipairs(members) do
    local slash = string.find(member, '/', 1, true)
    local ns, name = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
    local object_key = P .. ':o:shoot:' .. ns .. ':' .. name
    local stored = redis.call('HMGET', object_key, 'tp', 'bd')
    carried = stored[1] or ''
    stop_waiting(P, object_key, op.sched, member)
    enqueue(P, queued.tail(op.sched, stored[2], ns, name))
  end
  return {'ok', #members}
end

-- Equivalence classes of a scheduler, a page at a time, and the next cursor ('0': that was all); with op.counts without
-- their descriptors, of which there may be as many as waiting shoots; with op.ages since when the first of each waits.
function waiting(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local found = redis.call('HSCAN', P .. ':waiting:' .. op.sched, op.cursor, 'COUNT', op.limit)
  local classes = found[2]
  local unblock_index, reply = total_unblock_index(P), {found[1]}
  for i = 1, #classes, 2 do
    local class = P .. ':waiting:' .. op.sched .. ':' .. classes[i]
    reply[#reply + 1] = {classes[i], op.counts and '' or classes[i + 1], redis.call('ZCARD', class),
                         redis.call('ZCOUNT', class, '-inf', '(' .. unblock_index)}
    if op.ages then
      local first = redis.call('ZRANGE', class, 0, 0)[1] or ''
      reply[#reply][5] = queued.since(P .. ':o:shoot:' .. string.gsub(first, '/', ':', 1)) or ''
    end
  end
  return reply
end

register('mark_unschedulable', mark_unschedulable)
register('unblock', unblock)
register('waiting', waiting, 'no-writes')
