-- The relay's side: what is to be announced, what has been, and what must be announced again.

-- The head of the outbox, or what comes after an entry, with the current document of every object in it, who is to be
-- shown it, and the version of its removal if there is none. Only for who leads, in this life of Redis: entries of a store that
-- went back would take the place of newer ones on the bus, from which it is to be repaired.
local function outbox(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local first = op.after ~= '' and '(' .. op.after or '-'
  local entries = redis.call('XRANGE', P .. ':outbox', first, '+', 'COUNT', op.limit)
  local seen, documents = {}, {}
  for _, entry in ipairs(entries) do
    local fields = entry[2]
    if fields[1] == 'k' and not seen[fields[2]] then
      seen[fields[2]] = true
      documents[#documents + 1] = fields[2]
      documents[#documents + 1] = redis.call('HMGET', P .. ':o:' .. fields[2], unpack(PARTS))
      documents[#documents + 1] = current_audience(P, fields[2])
      documents[#documents + 1] = documents[#documents - 1][12] and '' or redis.call('HGET', P .. ':dead:' .. fields[2], 'ver') or ''
    end
  end
  return {'ok', entries, documents, recovery_id(P) or ''}
end

-- Forgets what has been announced, and remembers how far each stream has come.
local function trim(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  if op.after ~= '' then redis.call('XTRIM', P .. ':outbox', 'MINID', '=', op.after) end
  for stream, position in pairs(op.positions) do redis.call('HSET', P .. ':relay', stream, position) end
  return {'ok', redis.call('XLEN', P .. ':outbox')}
end

-- Appends the current state of one object to the outbox again (with its binding), or the tombstone of a removal that is
-- remembered. Of what nobody remembers nothing is announced: a store that was restored from a copy may never have had it,
-- or not where it runs. Nor is anything of what is not one's own (`op.own`): a seed is told of what is there or has left it,
-- and of what it knows by its uid.
local function announce_again(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local object = read_fields(P .. ':o:' .. op.key, {'ver', 'uid', 'prior'})
  if object.ver ~= '' then
    if op.runs and not is_settled(P, op, op.left, op.uid) then
      note_unknown(P, op)
      return {'unknown'}
    end
    if not op.own and op.uid ~= object.uid and not is_settled(P, op, op.left, op.uid) then return {'unknown'} end
    forget_settled(P, op)
    local uid = is_among(object.prior, op.uid) and op.uid or object.uid
    announce(P, op.key, object.ver, uid, 'modified', true, op.left)
  else
    local dead = read_fields(P .. ':dead:' .. op.key, {'ver', 'uid', 'prior', 'left'})
    if not op.own and op.uid == '' and not seeds_with({}, dead.left)[op.left] then return {'unknown'} end
    if dead.ver == '' or (op.uid ~= '' and op.uid ~= dead.uid and not is_among(dead.prior, op.uid)) then
      note_unknown(P, op)
      return {'unknown'}
    end
    if op.uid ~= '' then drop_unknown(P, op.left, op.key) end
    announce(P, op.key, dead.ver, op.uid ~= '' and op.uid or dead.uid, 'deleted', true, op.left)
  end
  return {'ok'}
end

-- Announces again what an index ('by_version' or 'graves') holds above a version, a page at a time; returns the
-- version to go on from, or 0 when it is through.
local function reannounce(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local found = redis.call('ZRANGEBYSCORE', P .. ':' .. op.index, '(' .. whole(op.version), '+inf',
                           'WITHSCORES', 'LIMIT', 0, op.limit)
  for i = 1, #found, 2 do
    local key, version = found[i], found[i + 1]
    if op.index == 'by_version' then
      local object = read_fields(P .. ':o:' .. key, {'uid', 'past'})
      local left = string.sub(key, 1, 6) ~= 'shoot:' and object.past or '' -- the seeds that a shoot left ask by themselves
      announce(P, key, version, object.uid, 'modified', true, left)
    else
      local dead = read_fields(P .. ':dead:' .. key, {'uid', 'left'})
      announce(P, key, version, dead.uid, 'deleted', true, dead.left)
    end
  end
  return {'ok', #found == 2 * op.limit and found[#found] or '0'}
end

-- Whether an object is shown on a seed ('': anywhere): a shoot where it is or goes, a Seed to itself, others with their shoot.
local function is_shown(P, shown)
  local key, seed = shown.key, shown.seed
  if seed == '' or key == 'seed:_:' .. seed then return redis.call('EXISTS', P .. ':o:' .. key) == 1 end
  local seeds = string.sub(key, 1, 6) == 'shoot:' and seeds_at(P, key) or seeds_with({}, current_audience(P, key))
  return seeds[seed] ~= nil
end

-- Tells of subjects with an announcement whether nothing is to be announced on them: 1 or 0 for each.
local function obsolete(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local reply = {'ok'}
  for i, shown in ipairs(op.shown) do reply[i + 1] = is_shown(P, shown) and 0 or 1 end
  return reply
end

-- Queues the work of a set of shoots again, a page at a time.
local function requeue(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local found = redis.call('SSCAN', P .. ':' .. op.set, op.cursor, 'COUNT', op.limit)
  for _, member in ipairs(found[2]) do
    local shoot = P .. ':o:shoot:' .. string.gsub(member, '/', ':', 1)
    local stored = redis.call('HMGET', shoot, 'class', 'bd')
    if not op.untried_only or (stored[1] or '') == '' then
      local band = op.bands and stored[2] or ''
      enqueue(P, op.queue .. (band ~= '' and '.' .. band or '') .. '.' .. string.gsub(member, '/', '.', 1))
    end
  end
  return {'ok', found[1]}
end

-- Queues the unblocking of every scheduler that has shoots waiting.
local function activate_waiting(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  activate_schedulers(P)
  return {'ok'}
end

-- Forgets removed objects whose removal is older than op.before and whose last request lies at or below op.floor.
local function collect_tombstones(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local collected = 0
  if recovery_id(P) then return {'ok', 0} end -- a seed may still ask for what was removed
  for _, key in ipairs(redis.call('ZRANGE', P .. ':graves', 0, op.limit - 1)) do
    local dead = read_fields(P .. ':dead:' .. key, {'at', 'req', 'ver'})
    if dead.at < op.before and (dead.req == '' or dead.req <= op.floor) then
      redis.call('DEL', P .. ':dead:' .. key)
      redis.call('ZREM', P .. ':graves', key)
      if dead.ver ~= '' and tonumber(dead.ver) > counter(P, 'collected') then redis.call('SET', P .. ':collected', dead.ver) end
      collected = collected + 1
    end
  end
  return {'ok', collected}
end

register('outbox', outbox, 'no-writes')
register('trim', trim, 'allow-oom')
register('announce_again', announce_again)
register('reannounce', reannounce)
register('obsolete', obsolete, 'no-writes')
register('requeue', requeue)
register('activate_waiting', activate_waiting)
register('collect_tombstones', collect_tombstones, 'allow-oom')
