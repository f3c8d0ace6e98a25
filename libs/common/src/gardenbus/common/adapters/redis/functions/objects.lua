-- Objects are created, changed and removed.

-- exports: audience_of

-- The seeds that have been shown an object which is removed, or (for a shoot) that it concerns.
function audience_of(P, op, object)
  if op.kind == 'shoot' then return seeds_of(object.seed, object.sseed) end
  if op.kind == 'seed' then return {[op.name] = true} end
  local shoot = followed_shoot(op.kind, op.ns, op.name, object.refs)
  return shoot and seeds_with(seeds_at(P, shoot), object.past) or {}
end

-- Takes an object out of the store and its indexes and says so. `object` holds the fields CURRENT.
local function remove(P, op, object)
  local object_key = P .. ':o:' .. op.key
  local member = op.ns .. '/' .. op.name
  local left, freed, prior = seeds_left(audience_of(P, op, object), {}), false, prior_uids(P, op.key, object.uid)
  forget_settled(P, op)
  if op.kind == 'shoot' then
    stop_waiting(P, object_key, object.sched, member)
    redis.call('SREM', P .. ':pending:' .. object.sched, member)
    redis.call('SREM', P .. ':migrating', member)
    uncount_shoot(P, object_key, op.ns, op.name)
    freed = move_usage(P, member, seeds_of(object.seed, object.sseed), {}, object, groups.NONE)
  end
  amounts.uncount_object(P, op.ns, object.size)
  redis.call('DEL', object_key)
  redis.call('ZREM', P .. ':list:' .. op.kind, member)
  local version = redis.call('INCR', P .. ':version')
  redis.call('ZREM', P .. ':by_version', op.key)
  redis.call('HDEL', P .. ':uids', object.uid)
  reindex_set(P, ':refs:', object.refs, '', op.key)
  reindex_set(P, ':owned:', object.own, '', op.key)
  reindex_claims(P, object.claims, '', op.key)
  reindex_demand(P, object.demand, '')
  if op.kind == 'resourcequota' then reindex_quota(P, op, object.quota, '') end
  write_fields(P .. ':dead:' .. op.key, {uid = object.uid, ver = whole(version), at = op.now, left = left, prior = prior,
                                         req = op.origin ~= '' and op.origin or object.req})
  redis.call('ZADD', P .. ':graves', version, op.key)
  if op.unblocks then redis.call('INCR', P .. ':gain_objects') end
  announce(P, op.key, version, object.uid, 'deleted', true, left)
  recount(P, op.kind, op.ns)
  if object.fol ~= '' then announce_followers(P, op, left, true) end
  if redis.call('EXISTS', P .. ':owned:' .. object.uid) == 1 then enqueue(P, 'garbage._.' .. object.uid) end
  if op.unblocks or freed then activate_schedulers(P) end
  return version
end

-- What the writer does not know yet of the object it wrote.
local function reply_with(outcome, object_key)
  return {outcome, redis.call('HMGET', object_key, 'ver', 'gen', 'uid', 'created', 'del', 'gate', 'pend', 'quota', 'status')}
end

-- The shoots' part of a put: usage, migration, waiting and the queues. Answers the seeds before and after it, whether a
-- place became free, and the work to queue. It may add to op.set.
local function put_shoot(P, op, object, created, changed_spec)
  local set, member, work = op.set, op.ns .. '/' .. op.name, {}
  local seed, status_seed = set.seed or object.seed, set.sseed or object.sseed
  local before, after = seeds_of(object.seed, object.sseed), seeds_of(seed, status_seed)
  local freed = move_usage(P, member, before, after, object, {rq = set.rq or object.rq, grp = set.grp or object.grp})
  local was_migrating = is_migrating(object.seed, object.sseed)
  if move_migrating(P, member, was_migrating, is_migrating(seed, status_seed)) then
    work[#work + 1] = 'migration.' .. op.ns .. '.' .. op.name
  end
  local scheduler = set.sched or object.sched
  if created and is_followed(P, op) then set.fol, object.fol = '1', '1' end
  if seed ~= '' and object.seed == '' then set.pend, set.pmsg, set.tries, set.tried = '', '', '', '' end
  if created or changed_spec or set.sched or (set.bd or object.bd) ~= object.bd then
    if object.sched ~= '' then
      stop_waiting(P, P .. ':o:' .. op.key, object.sched, member)
      redis.call('SREM', P .. ':pending:' .. object.sched, member)
    end
    if seed == '' and object.del == '' and scheduler ~= '' then
      if not is_noted('scheduler ' .. scheduler) then redis.call('SADD', P .. ':schedulers', scheduler) end
      redis.call('SADD', P .. ':pending:' .. scheduler, member)
      work[#work + 1] = queued.tail(scheduler, set.bd or object.bd, op.ns, op.name)
    end
  end
  return before, after, freed, work
end

-- What is known of the last object of a name, of which none is there.
local DEAD = {'ver', 'uid', 'prior', 'req'}

-- The same for an object that was created: what was written to it is all that there is.
local function reply_created(set)
  local values = {}
  for i, name in ipairs({'ver', 'gen', 'uid', 'created', 'del', 'gate', 'pend', 'quota', 'status'}) do
    values[i] = set[name] ~= '' and set[name] or false
  end
  return {'created', values}
end

-- Creates (base 0) or updates (base = the version read) one object.
local function put_one(P, op)
  carried = op.trace or ''
  local object_key = P .. ':o:' .. op.key
  local object = read_fields(object_key, CURRENT)
  if object.ver == '' then op.dead = read_fields(P .. ':dead:' .. op.key, DEAD) end
  local rejected = put_rejection(P, op, object)
  if rejected then return rejected end

  local set, created = op.set, op.base == 0
  if op.quiet then
    set.size = amounts.count_put(P, op, object_key, object)
    write_fields(object_key, set)
    if op.origin ~= '' then redis.call('HSET', object_key, 'req', op.origin) end
    return reply_with('ok', object_key)
  end
  if not created and object.del ~= '' and (set.fin or object.fin) == '' then
    return {'removed', remove(P, op, object)}
  end

  set.size = amounts.count_put(P, op, object_key, object)
  local version = next_version(P, op.key)
  local generation = created and (op.generation or 1) or tonumber(object.gen)
  local changed_spec = not created and op.bump
  if changed_spec then generation = generation + 1 end
  set.ver, set.gen = whole(version), whole(generation)
  if op.origin ~= '' then set.req = op.origin
  elseif created then set.req = op.dead.req end
  if op.gate then set.gate = whole(version) end
  if created then
    set.uid, set.created, set.prior = op.uid, op.created or op.now, prior_uids(P, op.key, op.uid, op.dead)
    redis.call('HSET', P .. ':uids', op.uid, op.key)
    if not is_noted('kind ' .. op.kind) then redis.call('SADD', P .. ':kinds', op.kind) end
    redis.call('ZADD', P .. ':list:' .. op.kind, 0, op.ns .. '/' .. op.name)
    if op.dead.ver ~= '' or op.dead.uid ~= '' then
      redis.call('ZREM', P .. ':graves', op.key)
      redis.call('DEL', P .. ':dead:' .. op.key)
    end
    if op.unknown then redis.call('HDEL', P .. ':unknown', op.unknown) end
    unknown_index = nil
    object.uid = op.uid
  end
  if set.refs and set.refs ~= object.refs then reindex_set(P, ':refs:', object.refs, set.refs, op.key) end
  if set.own then reindex_set(P, ':owned:', object.own, set.own, op.key) end
  if set.claims then reindex_claims(P, object.claims, set.claims, op.key) end
  if set.demand then reindex_demand(P, object.demand, set.demand) end
  if op.kind == 'resourcequota' then
    reindex_quota(P, op, object.quota, set.quota or '')
    if (set.quota or '') ~= '' then set.status = quota_status(P, op.ns, set.quota) end
  end

  local left, freed, work, has_moved = '', false, {}, false
  if op.kind == 'shoot' then
    local before, after
    before, after, freed, work = put_shoot(P, op, object, created, changed_spec)
    left = seeds_left(before, after)
    if left ~= '' then set.past = past_with(object.past, left) end
    has_moved = left ~= '' or seeds_left(after, before) ~= ''
  elseif op.kind == 'managedseed' or op.kind == 'shootstate' then
    left = put_follower(P, op, object, created)
  end
  if op.kind == 'shoot' then
    set.cnt = move_shoot_count(P, op.ns, op.name, {
      created = set.created or object.created, del = object.del, pend = set.pend or object.pend,
      seed = set.seed or object.seed, op = set.op or object.op, cnt = object.cnt})
  end
  write_fields(object_key, set, created)
  if op.unblocks then redis.call('INCR', P .. ':gain_objects') end
  announce(P, op.key, version, object.uid, created and 'added' or 'modified', op.bindings, left)
  if created then recount(P, op.kind, op.ns, op.key) end
  if has_moved and object.fol ~= '' then announce_followers(P, op, left, true) end
  for _, tail in ipairs(work) do enqueue(P, tail) end
  if created and not op.unknown then -- what is adopted may have an owner that was lost with it
    for _, owner in ipairs(split_lines(set.own)) do
      if redis.call('HEXISTS', P .. ':uids', owner) == 0 then enqueue(P, 'garbage._.' .. owner) end
    end
  end
  if op.unblocks or freed then activate_schedulers(P) end
  return created and reply_created(set) or reply_with('ok', object_key)
end

local function put(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  return reject_when_closed(P, op.outbox_max) or put_one(P, op)
end

-- Whether a put reads nothing that creations before it have in common: it creates a shoot without a seed, under versions and
-- ResourceQuotas alone.
local function is_plain(op)
  if op.kind ~= 'shoot' or op.base ~= 0 or op.quiet or op.unknown or (op.set.seed or op.set.sseed or '') ~= '' then return false end
  for _, guard in ipairs(op.guards) do
    if not (guard.version or guard.quota or guard.stored) then return false end
  end
  return true
end

local function put_of_many(keys, text)
  local P, op = keys[1], cmsgpack.unpack(text)
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  if is_plain(op) then begin_together() else end_together() end
  return put_one(P, op)
end

-- Carries several puts out in one call, each as if it came alone: what fails of one does not touch the others.
local function put_many(keys, args)
  local replies = {}
  for i = 1, #args do
    local ended, reply = pcall(put_of_many, keys, args[i])
    if not ended and type(reply) ~= 'table' then reply = redis.error_reply(tostring(reply)) end
    replies[i] = reply
  end
  end_together()
  return replies
end

-- Marks an object for deletion, or removes it when no finalizer holds it.
local function delete(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  carried = op.trace or ''
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  local object_key = P .. ':o:' .. op.key
  local object = read_fields(object_key, CURRENT)
  op.set = {}
  local rejected = put_rejection(P, op, object)
  if rejected then return rejected end
  if object.fin == '' then return {'removed', remove(P, op, object)} end
  if op.origin ~= '' then redis.call('HSET', object_key, 'req', op.origin) end
  if object.del == '' then
    if op.kind == 'shoot' then
      local member = op.ns .. '/' .. op.name
      stop_waiting(P, object_key, object.sched, member)
      redis.call('SREM', P .. ':pending:' .. object.sched, member)
      local kept = without_parts(object.refs)
      reindex_set(P, ':refs:', object.refs, kept, op.key)
      write_fields(object_key, {refs = kept})
    end
    local version = next_version(P, op.key)
    redis.call('HSET', object_key, 'ver', version, 'del', op.now, 'gen', tonumber(object.gen) + 1)
    if op.kind == 'shoot' then count_shoot(P, object_key, op.ns, op.name) end
    -- A seed takes nobody from here on: for the others it is lost now, not when its last finalizer goes.
    local lost = op.kind == 'seed' and op.unblocks
    if op.kind == 'seed' then redis.call('HSET', object_key, 'gate', version) end
    if lost then redis.call('INCR', P .. ':gain_objects') end
    announce(P, op.key, version, object.uid, 'modified', true, '')
    if lost then activate_schedulers(P) end
  end
  return reply_with('ok', object_key)
end

register('put', put)
register('put_many', put_many)
register('delete', delete, 'allow-oom')
