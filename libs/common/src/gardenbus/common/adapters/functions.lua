#!lua name=gardenbus
-- Every write of the store, as Redis Functions: each checks what it was based on, changes the object and its indexes,
-- and appends the news to the outbox, all or nothing. KEYS[1] is the landscape's prefix P, ARGV[1] a msgpack map.
-- Replies are flat arrays; the first element of a write's reply says how it ended. The Python side is
-- redis_store.py and redis_outbox.py; memory_store.py says the same in Python and passes the same tests.
--
-- Keys (all below P:)
--   o:<kind>:<ns>:<name>   hash   one object, in the parts of resources/document.py, and what it was indexed by;
--                                 of a seed `cap` and `mark` (takes so many shoots; is about to be removed), of a shoot
--                                 `fol` (something follows it), of what follows one `past` (seeds that it was taken from)
--   dead:<key>             hash   what is remembered of a removed object (uid, version, request order, seeds)
--   graves                 zset   <key> by the version of its removal
--   list:<kind>            zset   "<ns>/<name>" in lexical order
--   by_version             zset   <key> by version
--   uids                   hash   uid -> <key>
--   owned:<uid>, refs:<key>, usage:<seed>, pending:<scheduler>   sets
--   usage_changed          zset   seed by usage version
--   migrating              set    "<ns>/<name>" of the shoots whose spec and status name different seeds
--   claims                 hash   what only one object may have -> its <key>
--   kinds, schedulers      sets   every kind stored and every scheduler name asked for so far
--   waiting                set    scheduler names with waiting shoots
--   waiting:<scheduler>    hash   class -> descriptor;  waiting:<scheduler>:<class>  zset "<ns>/<name>" by gain seen
--   event:<id>             hash   count and first time of an Event, for ten minutes
--   fences                 hash   seed -> fencing number of its gardenlet
--   outbox                 stream what must be announced (a bind: the shoot and its Event in one);  relay  hash  how far each stream had come at the last trim
--   version, usage_version, gain_objects, gain_usage, leader     strings

-- The write fence: false after every start of Redis, whatever the disk brought back, until a relay has compared the
-- store with the bus and opened it.
local open = {}

-- What a reader needs to put the manifest together, in the order that redis_records.py expects.
local PARTS = {'av', 'kd', 'meta', 'labels', 'fin', 'spec', 'status', 'rest', 'seed', 'sseed',
               'uid', 'ver', 'gen', 'created', 'del', 'pend', 'gate'}

-- A whole number as text; tostring() turns to exponents at 1e15.
local function whole(number)
  return string.format('%.0f', number)
end

local function split_lines(text)
  local lines = {}
  for line in string.gmatch(text or '', '[^\n]+') do lines[#lines + 1] = line end
  return lines
end

local function read_fields(hash_key, names)
  local values = redis.call('HMGET', hash_key, unpack(names))
  local object = {}
  for i, name in ipairs(names) do object[name] = values[i] or '' end
  return object
end

local function counter(P, name)
  return tonumber(redis.call('GET', P .. ':' .. name) or '0')
end

local function total_gain(P)
  return counter(P, 'gain_objects') + counter(P, 'gain_usage')
end

local function refuse_when_closed(P, outbox_max)
  if not open[P] then return {'fenced'} end
  if outbox_max and redis.call('XLEN', P .. ':outbox') >= outbox_max then return {'full-outbox'} end
end

-- ---------------------------------------------------------------------------------------------- news

local function announce(P, key, version, uid, verb, with_binding, left)
  redis.call('XADD', P .. ':outbox', '*', 'k', key, 'v', version, 'u', uid, 'a', verb,
             'b', with_binding and '1' or '', 'l', left or '', 'g', counter(P, 'gain_objects'))
end

local function enqueue(P, tail)
  redis.call('XADD', P .. ':outbox', '*', 'q', tail)
end

local function record_event(P, event)
  local id = redis.sha1hex(event.key .. '\n' .. event.uid .. '\n' .. event.reason .. '\n' .. event.message)
  local seen = P .. ':event:' .. id
  local count = redis.call('HINCRBY', seen, 'count', 1)
  if count == 1 then
    redis.call('HSET', seen, 'first', event.now)
    redis.call('EXPIRE', seen, 600)
  end
  redis.call('XADD', P .. ':outbox', '*', 'e', event.key, 'u', event.uid, 'id', id, 't', event.type, 'r', event.reason,
             'm', event.message, 'by', event.by, 'ac', event.action or '', 'n', count, 'at', event.now,
             'first', redis.call('HGET', seen, 'first') or event.now)
end

local function wake_schedulers(P)
  for _, scheduler in ipairs(redis.call('SMEMBERS', P .. ':waiting')) do
    enqueue(P, 'waking._.' .. scheduler)
  end
end

-- ---------------------------------------------------------------------------------------------- indexes

local function next_version(P, key)
  local version = redis.call('INCR', P .. ':version')
  redis.call('ZADD', P .. ':by_version', version, key)
  return version
end

-- Takes a shoot on or off a seed's usage; answers whether a place became free.
local function move_usage(P, member, before, after)
  local freed = false
  for seed in pairs(before) do
    if not after[seed] and redis.call('SREM', P .. ':usage:' .. seed, member) == 1 then
      freed = true
      redis.call('ZADD', P .. ':usage_changed', redis.call('INCR', P .. ':usage_version'), seed)
    end
  end
  for seed in pairs(after) do
    if not before[seed] and redis.call('SADD', P .. ':usage:' .. seed, member) == 1 then
      redis.call('ZADD', P .. ':usage_changed', redis.call('INCR', P .. ':usage_version'), seed)
    end
  end
  if freed then redis.call('INCR', P .. ':gain_usage') end
  return freed
end

local function seeds_of(seed, status_seed)
  local seeds = {}
  if seed ~= '' then seeds[seed] = true end
  if status_seed ~= '' then seeds[status_seed] = true end
  return seeds
end

-- The seeds that a stored shoot concerns, by its key (nil: none).
local function seeds_at(P, shoot)
  if not shoot then return {} end
  local on = read_fields(P .. ':o:' .. shoot, {'seed', 'sseed'})
  return seeds_of(on.seed, on.sseed)
end

-- The seeds in `before` that are not in `after`, joined: who must be told that the shoot is no longer theirs.
local function seeds_left(before, after)
  local left = {}
  for seed in pairs(before) do
    if not after[seed] then left[#left + 1] = seed end
  end
  table.sort(left)
  return table.concat(left, ',')
end

-- A set of seeds with those in joined text.
local function seeds_with(seeds, joined)
  for seed in string.gmatch(joined, '[^,]+') do seeds[seed] = true end
  return seeds
end

local function is_migrating(seed, status_seed)
  return seed ~= '' and status_seed ~= '' and seed ~= status_seed
end

-- Keeps the set of migrating shoots; answers whether the shoot began or ended to be one.
local function move_migrating(P, member, before, after)
  if before == after then return false end
  redis.call(after and 'SADD' or 'SREM', P .. ':migrating', member)
  return true
end

local function stop_waiting(P, object_key, scheduler, member)
  local class = redis.call('HGET', object_key, 'class')
  if not class or class == '' then return end
  local waiting = P .. ':waiting:' .. scheduler
  redis.call('ZREM', waiting .. ':' .. class, member)
  if redis.call('EXISTS', waiting .. ':' .. class) == 0 then
    redis.call('HDEL', waiting, class)
    if redis.call('EXISTS', waiting) == 0 then redis.call('SREM', P .. ':waiting', scheduler) end
  end
  redis.call('HDEL', object_key, 'class')
end

local function reindex_set(P, prefix, before, after, key)
  local kept = {}
  for _, member in ipairs(split_lines(after)) do
    kept[member] = true
    redis.call('SADD', P .. prefix .. member, key)
  end
  for _, member in ipairs(split_lines(before)) do
    if not kept[member] then redis.call('SREM', P .. prefix .. member, key) end
  end
end

local function reindex_claims(P, before, after, key)
  local kept = {}
  for _, claim in ipairs(split_lines(after)) do
    kept[claim] = true
    redis.call('HSET', P .. ':claims', claim, key)
  end
  for _, claim in ipairs(split_lines(before)) do
    if not kept[claim] and redis.call('HGET', P .. ':claims', claim) == key then
      redis.call('HDEL', P .. ':claims', claim)
    end
  end
end

-- ---------------------------------------------------------------------------------------------- shoots and what they host

-- What carries some seeds: they themselves, the shoots that they are (by their ManagedSeeds), the seeds that those
-- shoots are on, and so on; as a set of keys.
local function carriers(P, seeds)
  local found, ahead = {}, {}
  for seed in pairs(seeds) do ahead[#ahead + 1] = seed end
  while #ahead > 0 do
    local seed = table.remove(ahead)
    if not found['seed:_:' .. seed] then
      found['seed:_:' .. seed] = true
      local shoot = redis.call('HGET', P .. ':o:managedseed:garden:' .. seed, 'refs')
      if shoot then
        found[shoot] = true
        for below in pairs(seeds_at(P, shoot)) do ahead[#ahead + 1] = below end
      end
    end
  end
  return found
end

-- Whether a seed is hosted by a shoot, however indirectly. Only shoots in the garden namespace can be seeds.
local function is_hosted_by(P, seed, shoot)
  return shoot.ns == 'garden' and carriers(P, {[seed] = true})['shoot:garden:' .. shoot.name] ~= nil
end

-- The shoot (by its key) to whose seeds an object is shown: its ManagedSeed's and its ShootState's gardenlets see them.
local function followed_shoot(kind, ns, name, refs)
  if kind == 'shootstate' then return 'shoot:' .. ns .. ':' .. name end
  if kind == 'managedseed' and refs ~= '' then return refs end
end

-- Whether something follows a shoot; kept as its field `fol`, so that nothing has to be looked up where nothing does.
local function is_followed(P, shoot)
  local tail = ':shoot:' .. shoot.ns .. ':' .. shoot.name
  return redis.call('EXISTS', P .. ':refs' .. tail, P .. ':o:shootstate:' .. shoot.ns .. ':' .. shoot.name) > 0
end

local function note_follower(P, shoot)
  if shoot and redis.call('EXISTS', P .. ':o:' .. shoot) == 1 then redis.call('HSET', P .. ':o:' .. shoot, 'fol', '1') end
end

-- The seeds that an object was ever taken from, with those that it is taken from now.
local function past_with(past, left)
  return seeds_left(seeds_with(seeds_with({}, past), left), {})
end

-- Shows what follows a shoot to the seeds that the shoot concerns by now, and withdraws it from those that it `left`;
-- these are remembered, so that it can be withdrawn again. A new version each time keeps the news in order; there is
-- none to be had (`with_version` false) before the fence opens.
local function announce_followers(P, shoot, left, with_version)
  local followers = redis.call('SMEMBERS', P .. ':refs:shoot:' .. shoot.ns .. ':' .. shoot.name) -- ManagedSeeds
  followers[#followers + 1] = 'shootstate:' .. shoot.ns .. ':' .. shoot.name
  table.sort(followers)
  for _, key in ipairs(followers) do
    local follower = read_fields(P .. ':o:' .. key, {'ver', 'uid', 'past'})
    if follower.ver ~= '' then
      local version = with_version and next_version(P, key) or follower.ver
      redis.call('HSET', P .. ':o:' .. key, 'ver', version, 'past', past_with(follower.past, left))
      announce(P, key, version, follower.uid, 'modified', true, left)
    end
  end
end

local CURRENT = {'ver', 'uid', 'gen', 'del', 'fin', 'seed', 'sseed', 'sched', 'refs', 'own', 'claims', 'req', 'spec',
                 'mark', 'fol', 'past'}

-- The seeds that have been shown an object which is removed, or (for a shoot) that it concerns.
local function audience_of(P, op, object)
  if op.kind == 'shoot' then return seeds_of(object.seed, object.sseed) end
  if op.kind == 'seed' then return {[op.name] = true} end
  local shoot = followed_shoot(op.kind, op.ns, op.name, object.refs)
  return shoot and seeds_with(seeds_at(P, shoot), object.past) or {}
end

-- Takes an object out of the store and its indexes and says so. `object` holds the fields CURRENT.
local function remove(P, op, object)
  local object_key = P .. ':o:' .. op.key
  local member = op.ns .. '/' .. op.name
  local left, freed = seeds_left(audience_of(P, op, object), {}), false
  if op.kind == 'shoot' then
    stop_waiting(P, object_key, object.sched, member)
    redis.call('SREM', P .. ':pending:' .. object.sched, member)
    redis.call('SREM', P .. ':migrating', member)
    freed = move_usage(P, member, seeds_of(object.seed, object.sseed), {})
  end
  redis.call('DEL', object_key)
  redis.call('ZREM', P .. ':list:' .. op.kind, member)
  local version = redis.call('INCR', P .. ':version')
  redis.call('ZREM', P .. ':by_version', op.key)
  redis.call('HDEL', P .. ':uids', object.uid)
  reindex_set(P, ':refs:', object.refs, '', op.key)
  reindex_set(P, ':owned:', object.own, '', op.key)
  reindex_claims(P, object.claims, '', op.key)
  redis.call('HSET', P .. ':dead:' .. op.key, 'uid', object.uid, 'ver', version, 'at', op.now, 'left', left,
             'req', op.origin ~= '' and op.origin or object.req)
  redis.call('ZADD', P .. ':graves', version, op.key)
  if op.gain then redis.call('INCR', P .. ':gain_objects') end
  announce(P, op.key, version, object.uid, 'deleted', true, left)
  if object.fol ~= '' then announce_followers(P, op, left, true) end
  if redis.call('EXISTS', P .. ':owned:' .. object.uid) == 1 then enqueue(P, 'garbage._.' .. object.uid) end
  if op.gain or freed then wake_schedulers(P) end
  return version
end

-- ---------------------------------------------------------------------------------------------- writes

-- Whether a seed takes one more shoot (`shoot` has its ns and name): nil, or why not.
local function refusal_of(P, shoot, seed, gate)
  local stored = read_fields(P .. ':o:seed:_:' .. seed, {'ver', 'del', 'gate', 'cap', 'mark'})
  if stored.ver == '' or stored.del ~= '' or stored.mark ~= '' then return 'seed-gone' end
  if is_hosted_by(P, seed, shoot) then return 'circular' end
  if gate and tonumber(stored.gate) ~= gate then return 'seed-changed' end
  if stored.cap ~= '' and redis.call('SCARD', P .. ':usage:' .. seed) >= tonumber(stored.cap)
     and redis.call('SISMEMBER', P .. ':usage:' .. seed, shoot.ns .. '/' .. shoot.name) == 0 then return 'full' end
end

-- Whether a shoot may be where it is reported to be: on a seed that it was not sent to, only these two forbid it.
local function report_refusal(P, shoot, seed)
  if (redis.call('HGET', P .. ':o:seed:_:' .. seed, 'mark') or '') ~= '' then return 'seed-gone' end
  if is_hosted_by(P, seed, shoot) then return 'circular' end
end

-- Why the seeds that a put names speak against it, or nil: of a shoot, and of a ManagedSeed's shoot.
local function placement_refusal(P, op, object)
  local seed, reported = op.set.seed or '', op.set.sseed or ''
  if seed ~= '' and seed ~= object.seed then
    local refusal = refusal_of(P, op, seed, op.gate_seen)
    if refusal then return refusal end
  end
  if reported ~= '' and reported ~= object.sseed and reported ~= object.seed then
    local refusal = report_refusal(P, op, reported)
    if refusal then return refusal end
  end
  local shoot = op.kind == 'managedseed' and op.ns == 'garden' and op.set.refs or ''
  if shoot ~= '' and shoot ~= object.refs and carriers(P, seeds_at(P, shoot))['seed:_:' .. op.name] then
    return 'circular'
  end
end

-- What the writer does not know yet of the object it wrote.
local function reply_with(outcome, object_key)
  return {outcome, redis.call('HMGET', object_key, 'ver', 'gen', 'uid', 'created', 'del', 'gate', 'pend')}
end

-- The first guard that does not hold, as a reply, or nil.
local function guard_refusal(P, guards)
  for i, guard in ipairs(guards) do
    if guard.version then
      local version = redis.call('HGET', P .. ':o:' .. guard.key, 'ver') or '0'
      if tonumber(version) ~= guard.version then return {'outdated', i, version} end
    else
      local holders = redis.call('SCARD', P .. ':' .. guard.set)
      if holders > 0 then return {'guarded', i, holders, redis.call('SRANDMEMBER', P .. ':' .. guard.set)} end
    end
  end
end

-- Why a put (or a deletion, with nothing to set) cannot be taken, as a reply, or nil.
local function put_refusal(P, op, object)
  local exists = object.ver ~= ''
  if op.origin ~= '' then
    local taken = exists and object.req or redis.call('HGET', P .. ':dead:' .. op.key, 'req') or ''
    if taken ~= '' and op.origin <= taken then return {'superseded', taken} end
  end
  if op.base == 0 and exists then return {'exists'} end
  if op.base > 0 and not exists then return {'gone'} end
  if op.base > 0 and tonumber(object.ver) ~= op.base then return {'conflict', object.ver} end
  local unguarded = guard_refusal(P, op.guards)
  if unguarded then return unguarded end
  for _, claim in ipairs(split_lines(op.set.claims)) do
    local holder = redis.call('HGET', P .. ':claims', claim)
    if holder and holder ~= op.key then return {'claimed', claim, holder} end
  end
  local refusal = placement_refusal(P, op, object)
  if refusal then return {'refused', refusal} end
  if (op.set.mark or '') ~= '' and object.mark == '' then -- a seed is marked for removal only while it is empty
    local usage = P .. ':usage:' .. op.name
    local shoots = redis.call('SCARD', usage)
    if shoots > 0 then return {'in-use', shoots, redis.call('SRANDMEMBER', usage)} end
  end
end

local function write_fields(object_key, fields)
  local set, unset = {}, {}
  for name, value in pairs(fields) do
    if value == '' then unset[#unset + 1] = name
    else set[#set + 1] = name; set[#set + 1] = value end
  end
  if #set > 0 then redis.call('HSET', object_key, unpack(set)) end
  if #unset > 0 then redis.call('HDEL', object_key, unpack(unset)) end
end

-- The shoots' part of a put: usage, migration, waiting and the queues. Answers the seeds before and after it, whether a
-- place became free, and the work to queue. It may add to op.set.
local function put_shoot(P, op, object, created, changed_spec)
  local set, member, work = op.set, op.ns .. '/' .. op.name, {}
  local seed, status_seed = set.seed or object.seed, set.sseed or object.sseed
  local before, after = seeds_of(object.seed, object.sseed), seeds_of(seed, status_seed)
  local freed = move_usage(P, member, before, after)
  local was_migrating = is_migrating(object.seed, object.sseed)
  if move_migrating(P, member, was_migrating, is_migrating(seed, status_seed)) then
    work[#work + 1] = 'migration.' .. op.ns .. '.' .. op.name
  end
  local scheduler = set.sched or object.sched
  if created and is_followed(P, op) then set.fol, object.fol = '1', '1' end
  if seed ~= '' and object.seed == '' then set.pend, set.pmsg, set.tries, set.tried = '', '', '', '' end
  if created or changed_spec or set.sched then
    if object.sched ~= '' then
      stop_waiting(P, P .. ':o:' .. op.key, object.sched, member)
      redis.call('SREM', P .. ':pending:' .. object.sched, member)
    end
    if seed == '' and object.del == '' and scheduler ~= '' then
      redis.call('SADD', P .. ':schedulers', scheduler)
      redis.call('SADD', P .. ':pending:' .. scheduler, member)
      work[#work + 1] = 'scheduling.' .. scheduler .. '.' .. op.ns .. '.' .. op.name
    end
  end
  return before, after, freed, work
end

-- The followers' part of a put: an object that comes to follow a shoot, or another one, is shown elsewhere.
local function put_follower(P, op, object, created)
  local shoot = followed_shoot(op.kind, op.ns, op.name, op.set.refs or object.refs)
  local old = not created and followed_shoot(op.kind, op.ns, op.name, object.refs) or nil
  if shoot == old then return '' end
  note_follower(P, shoot)
  local left = seeds_left(seeds_at(P, old), seeds_at(P, shoot))
  op.set.past = past_with(object.past, left)
  return left
end

-- Creates (base 0) or updates (base = the version read) one object.
local function put(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  local object_key = P .. ':o:' .. op.key
  local object = read_fields(object_key, CURRENT)
  local refused = put_refusal(P, op, object)
  if refused then return refused end

  local set, created = op.set, op.base == 0
  if op.quiet then
    write_fields(object_key, set)
    if op.origin ~= '' then redis.call('HSET', object_key, 'req', op.origin) end
    return reply_with('ok', object_key)
  end
  if not created and object.del ~= '' and (set.fin or object.fin) == '' then
    return {'removed', remove(P, op, object)}
  end

  local version = next_version(P, op.key)
  local generation = created and 1 or tonumber(object.gen)
  local changed_spec = not created and op.bump
  if changed_spec then generation = generation + 1 end
  set.ver, set.gen = whole(version), whole(generation)
  if op.origin ~= '' then set.req = op.origin
  elseif created then set.req = redis.call('HGET', P .. ':dead:' .. op.key, 'req') or '' end
  if op.gate then set.gate = whole(version) end
  if created then
    set.uid, set.created = op.uid, op.now
    redis.call('HSET', P .. ':uids', op.uid, op.key)
    redis.call('SADD', P .. ':kinds', op.kind)
    redis.call('ZADD', P .. ':list:' .. op.kind, 0, op.ns .. '/' .. op.name)
    redis.call('ZREM', P .. ':graves', op.key)
    redis.call('DEL', P .. ':dead:' .. op.key)
    object.uid = op.uid
  end
  if set.refs then reindex_set(P, ':refs:', object.refs, set.refs, op.key) end
  if set.own then reindex_set(P, ':owned:', object.own, set.own, op.key) end
  if set.claims then reindex_claims(P, object.claims, set.claims, op.key) end

  local left, freed, work, has_moved = '', false, {}, false
  if op.kind == 'shoot' then
    local before, after
    before, after, freed, work = put_shoot(P, op, object, created, changed_spec)
    left = seeds_left(before, after)
    has_moved = left ~= '' or seeds_left(after, before) ~= ''
  elseif op.kind == 'managedseed' or op.kind == 'shootstate' then
    left = put_follower(P, op, object, created)
  end
  write_fields(object_key, set)
  if op.gain then redis.call('INCR', P .. ':gain_objects') end
  announce(P, op.key, version, object.uid, created and 'added' or 'modified', op.bindings, left)
  if has_moved and object.fol ~= '' then announce_followers(P, op, left, true) end
  for _, tail in ipairs(work) do enqueue(P, tail) end
  if created then
    for _, owner in ipairs(split_lines(set.own)) do
      if redis.call('HEXISTS', P .. ':uids', owner) == 0 then enqueue(P, 'garbage._.' .. owner) end
    end
  end
  if op.gain or freed then wake_schedulers(P) end
  return reply_with(created and 'created' or 'ok', object_key)
end

-- Carries several puts out in one call, each as if it came alone: what fails of one does not touch the others.
local function put_many(keys, args)
  local replies = {}
  for i = 1, #args do
    local ended, reply = pcall(put, keys, {args[i]})
    if not ended and type(reply) ~= 'table' then reply = redis.error_reply(tostring(reply)) end
    replies[i] = reply
  end
  return replies
end

-- Marks an object for deletion, or removes it when no finalizer holds it.
local function delete(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  local object_key = P .. ':o:' .. op.key
  local object = read_fields(object_key, CURRENT)
  op.set = {}
  local refused = put_refusal(P, op, object)
  if refused then return refused end
  if object.fin == '' then return {'removed', remove(P, op, object)} end
  if op.origin ~= '' then redis.call('HSET', object_key, 'req', op.origin) end
  if object.del == '' then
    if op.kind == 'shoot' then
      local member = op.ns .. '/' .. op.name
      stop_waiting(P, object_key, object.sched, member)
      redis.call('SREM', P .. ':pending:' .. object.sched, member)
    end
    local version = next_version(P, op.key)
    redis.call('HSET', object_key, 'ver', version, 'del', op.now, 'gen', tonumber(object.gen) + 1)
    -- A seed takes nobody from here on: for the others it is lost now, not when its last finalizer goes.
    local lost = op.kind == 'seed' and op.gain
    if op.kind == 'seed' then redis.call('HSET', object_key, 'gate', version) end
    if lost then redis.call('INCR', P .. ':gain_objects') end
    announce(P, op.key, version, object.uid, 'modified', true, '')
    if lost then wake_schedulers(P) end
  end
  return reply_with('ok', object_key)
end

-- Why a put or a deletion would not be taken, and nothing else: it writes nothing.
local function rehearse(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  return put_refusal(P, op, read_fields(P .. ':o:' .. op.key, CURRENT)) or {'ok'}
end

-- ---------------------------------------------------------------------------------------------- placing

-- Usage that changed after `since`, and the gains; nothing but zeros when nobody wants to know (`since` nil).
local function usage_reply(P, since)
  if not since then return {0, 0, 0} end
  local reply = {counter(P, 'usage_version'), counter(P, 'gain_objects'), counter(P, 'gain_usage')}
  for _, seed in ipairs(redis.call('ZRANGEBYSCORE', P .. ':usage_changed', '(' .. since, '+inf')) do
    reply[#reply + 1] = seed
    reply[#reply + 1] = redis.call('SCARD', P .. ':usage:' .. seed)
  end
  return reply
end

local PLACED = {'ver', 'uid', 'gen', 'del', 'seed', 'sseed', 'fin', 'sched', 'fol', 'class', 'pend', 'tries'}

-- Binds one shoot under numbers that nobody else has had: `version` and `usage_version`. The Event that says so goes
-- with the news of the shoot, in one entry. Answers what came of it, whether the seed's usage grew by it, and whether
-- something follows the shoot.
local function bind_one(P, item, version, usage_version, gain)
  local key = 'shoot:' .. item.ns .. ':' .. item.name
  local object_key, member = P .. ':o:' .. key, item.ns .. '/' .. item.name
  local object = read_fields(object_key, PLACED)
  if object.ver == '' or object.uid ~= item.uid then return 'gone' end
  if object.del ~= '' then return 'deleting' end
  if object.seed ~= '' then return 'scheduled' end
  if tonumber(object.gen) ~= item.gen then return 'changed' end
  local refusal = refusal_of(P, item, item.seed, item.gate)
  if refusal then return refusal end

  redis.call('ZADD', P .. ':by_version', version, key)
  local finalizers = object.fin
  local held = false
  for _, finalizer in ipairs(split_lines(finalizers)) do held = held or finalizer == 'gardener' end
  if not held then finalizers = finalizers == '' and 'gardener' or finalizers .. '\ngardener' end
  if object.class ~= '' then stop_waiting(P, object_key, object.sched, member) end
  redis.call('SREM', P .. ':pending:' .. object.sched, member)
  if item.spec then
    redis.call('HSET', object_key, 'ver', version, 'gen', item.gen + 1, 'seed', item.seed, 'fin', finalizers,
               'spec', item.spec)
  else
    redis.call('HSET', object_key, 'ver', version, 'gen', item.gen + 1, 'seed', item.seed, 'fin', finalizers)
  end
  if object.pend ~= '' or object.tries ~= '' then redis.call('HDEL', object_key, 'pend', 'pmsg', 'tries', 'tried') end
  local is_new = redis.call('SADD', P .. ':usage:' .. item.seed, member) == 1
  if is_new then redis.call('ZADD', P .. ':usage_changed', usage_version, item.seed) end
  redis.call('XADD', P .. ':outbox', '*', 'k', key, 'v', version, 'u', object.uid, 'a', 'modified', 'b', '1', 'l', '',
             'g', gain, 'to', item.seed, 'by', item.by, 'at', item.now)
  if is_migrating(item.seed, object.sseed) then
    move_migrating(P, member, false, true)
    enqueue(P, 'migration.' .. item.ns .. '.' .. item.name)
  end
  return 'bound', is_new, object.fol ~= ''
end

-- Places up to 100 shoots; every item is checked on its own.
local function bind(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  local count, gain = #op.items, counter(P, 'gain_objects')
  local last_version = redis.call('INCRBY', P .. ':version', count)
  local last_usage = redis.call('INCRBY', P .. ':usage_version', count)
  local version, usage_version = last_version - count, last_usage - count
  local outcomes, followed = {}, {}
  for i, item in ipairs(op.items) do
    local outcome, is_new, is_followed_by = bind_one(P, item, version + 1, usage_version + 1, gain)
    outcomes[i] = outcome
    if outcome == 'bound' then version = version + 1 end
    if is_new then usage_version = usage_version + 1 end
    if is_followed_by then followed[#followed + 1] = item end
  end
  -- Numbers are taken first and those not used given back, so that none is used twice wherever this ends.
  if version < last_version then redis.call('DECRBY', P .. ':version', last_version - version) end
  if usage_version < last_usage then redis.call('DECRBY', P .. ':usage_version', last_usage - usage_version) end
  for _, item in ipairs(followed) do announce_followers(P, item, '', true) end -- their versions come after all these
  return {'ok', outcomes, usage_reply(P, op.since)}
end

local function park_one(P, item, gain_objects, gain_usage)
  local key = 'shoot:' .. item.ns .. ':' .. item.name
  local object_key, member = P .. ':o:' .. key, item.ns .. '/' .. item.name
  local object = read_fields(object_key, {'ver', 'uid', 'gen', 'del', 'seed', 'sched', 'class', 'pmsg', 'tries', 'tried'})
  if object.ver == '' or object.uid ~= item.uid or object.del ~= '' or object.seed ~= ''
     or tonumber(object.gen) ~= item.gen or object.sched ~= item.sched then return {'done', 0} end
  if gain_objects > item.seen_objects or gain_usage ~= item.seen_usage then return {'again', 0} end

  local attempts = object.tried == object.gen and tonumber(object.tries) + 1 or 1
  if object.class ~= item.class then stop_waiting(P, object_key, object.sched, member) end
  local waiting = P .. ':waiting:' .. item.sched
  redis.call('SADD', P .. ':waiting', item.sched)
  redis.call('HSET', waiting, item.class, item.descriptor)
  redis.call('ZADD', waiting .. ':' .. item.class, gain_objects + gain_usage, member)
  redis.call('HSET', object_key, 'class', item.class, 'tries', attempts, 'tried', item.gen)
  if object.pmsg ~= item.message then
    local version = next_version(P, key)
    redis.call('HSET', object_key, 'ver', version, 'pend', item.pending, 'pmsg', item.message)
    announce(P, key, version, object.uid, 'modified', false, '')
    record_event(P, {key = key, uid = object.uid, type = 'Warning', reason = 'SchedulingFailed',
                     message = item.message, by = item.by, action = 'Reconcile', now = item.now})
  end
  return {'parked', attempts}
end

-- Lets up to 100 shoots wait, unless something was gained since the snapshot that refused them.
local function park(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  local gain_objects, gain_usage = counter(P, 'gain_objects'), counter(P, 'gain_usage')
  local outcomes = {}
  for i, item in ipairs(op.items) do outcomes[i] = park_one(P, item, gain_objects, gain_usage) end
  return {'ok', outcomes, usage_reply(P, op.since)}
end

-- Queues again up to op.limit shoots of a class that were refused before the latest gain.
local function wake(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  local class = P .. ':waiting:' .. op.sched .. ':' .. op.class
  local members = redis.call('ZRANGEBYSCORE', class, '-inf', '(' .. total_gain(P), 'LIMIT', 0, op.limit)
  for _, member in ipairs(members) do
    local slash = string.find(member, '/', 1, true)
    local ns, name = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
    stop_waiting(P, P .. ':o:shoot:' .. ns .. ':' .. name, op.sched, member)
    enqueue(P, 'scheduling.' .. op.sched .. '.' .. ns .. '.' .. name)
  end
  return {'ok', #members}
end

local function note_event(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P, op.outbox_max)
  if closed then return closed end
  record_event(P, op)
  return {'ok'}
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

-- Appends the current state of one object to the outbox again (with its binding), or its tombstone.
local function announce_again(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = refuse_when_closed(P)
  if closed then return closed end
  local object = read_fields(P .. ':o:' .. op.key, {'ver', 'uid'})
  if object.ver ~= '' then
    announce(P, op.key, object.ver, object.uid, 'modified', true, op.left)
  else
    local dead = read_fields(P .. ':dead:' .. op.key, {'ver', 'uid'})
    announce(P, op.key, dead.ver == '' and counter(P, 'version') or dead.ver, dead.uid, 'deleted', true, op.left)
  end
  return {'ok'}
end

-- ---------------------------------------------------------------------------------------------- reads

-- A page of objects of a kind, with the version and gain that stood when it was read.
local function list(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local first = op.after ~= '' and '(' .. op.after or (op.ns ~= '' and '[' .. op.ns .. '/' or '-')
  local last = op.ns ~= '' and '(' .. op.ns .. '0' or '+' -- '0' follows '/'
  local members = redis.call('ZRANGEBYLEX', P .. ':list:' .. op.kind, first, last, 'LIMIT', 0, op.limit)
  local reply = {counter(P, 'version'), counter(P, 'gain_objects')}
  for _, member in ipairs(members) do
    reply[#reply + 1] = member
    reply[#reply + 1] = redis.call('HMGET', P .. ':o:' .. op.kind .. ':' .. string.gsub(member, '/', ':', 1), unpack(PARTS))
  end
  return reply
end

local function usage(keys, args)
  return usage_reply(keys[1], cmsgpack.unpack(args[1]).since)
end

-- The classes that wait for a scheduler, a page at a time, and where to go on ('0': that was all).
local function waiting(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local found = redis.call('HSCAN', P .. ':waiting:' .. op.sched, op.cursor, 'COUNT', op.limit)
  local classes = found[2]
  local gain, reply = total_gain(P), {found[1]}
  for i = 1, #classes, 2 do
    local class = P .. ':waiting:' .. op.sched .. ':' .. classes[i]
    reply[#reply + 1] = {classes[i], classes[i + 1], redis.call('ZCARD', class),
                         redis.call('ZCOUNT', class, '-inf', '(' .. gain)}
  end
  return reply
end

-- ---------------------------------------------------------------------------------------------- relay

-- The seeds that an object which follows a shoot is to be shown to now; none for any other.
local function current_audience(P, key)
  if string.sub(key, 1, 6) == 'shoot:' then return '' end
  local kind, ns, name = string.match(key, '^(%w+):([^:]*):(.*)$')
  if kind ~= 'managedseed' and kind ~= 'shootstate' then return '' end
  local object = read_fields(P .. ':o:' .. key, {'ver', 'refs'})
  if object.ver == '' then return '' end
  return seeds_left(seeds_at(P, followed_shoot(kind, ns, name, object.refs)), {})
end

-- The head of the outbox, or what comes after an entry, with the current document of every object in it and who is to be shown it.
local function outbox(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
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
    end
  end
  return {entries, documents}
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

-- Forgets what has been announced, and remembers how far each stream has come.
local function trim(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  if op.after ~= '' then redis.call('XTRIM', P .. ':outbox', 'MINID', '=', op.after) end
  for stream, position in pairs(op.positions) do redis.call('HSET', P .. ':relay', stream, position) end
  return {'ok', redis.call('XLEN', P .. ':outbox')}
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

-- Puts back one document that the bus has in a higher version than the store (before the fence opens).
local function restore(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local object_key, member = P .. ':o:' .. op.key, op.ns .. '/' .. op.name
  local object = read_fields(object_key, CURRENT)
  local known = object.ver ~= '' and tonumber(object.ver) or tonumber(redis.call('HGET', P .. ':dead:' .. op.key, 'ver') or '0')
  if known >= op.version then return {'known'} end
  local set = op.set
  local shoot = op.kind == 'shoot'
  if shoot and object.ver ~= '' then
    stop_waiting(P, object_key, object.sched, member)
    redis.call('SREM', P .. ':pending:' .. object.sched, member)
  end
  local before, after = seeds_of(object.seed, object.sseed), seeds_of(set.seed or '', set.sseed or '')
  local left = seeds_left(op.deleted and audience_of(P, op, object) or before, after)
  if shoot then
    move_usage(P, member, before, after)
    move_migrating(P, member, is_migrating(object.seed, object.sseed), is_migrating(set.seed or '', set.sseed or ''))
  end
  if object.ver ~= '' and object.uid ~= op.uid then
    redis.call('HDEL', P .. ':uids', object.uid)
    redis.call('HDEL', object_key, 'last', 'rf', 'tries', 'tried') -- they belong to another object of this name
  end
  if not shoot and not op.deleted then left = put_follower(P, op, object, object.ver == '') end
  reindex_set(P, ':refs:', object.refs, set.refs or '', op.key)
  reindex_set(P, ':owned:', object.own, set.own or '', op.key)
  reindex_claims(P, object.claims, set.claims or '', op.key)
  if op.deleted then
    redis.call('DEL', object_key)
    redis.call('ZREM', P .. ':list:' .. op.kind, member)
    redis.call('ZREM', P .. ':by_version', op.key)
    redis.call('HDEL', P .. ':uids', op.uid)
    redis.call('HSET', P .. ':dead:' .. op.key, 'uid', op.uid, 'ver', op.version, 'at', op.now, 'left', left)
    if object.ver ~= '' then redis.call('HSET', P .. ':dead:' .. op.key, 'req', object.req) end
    redis.call('ZADD', P .. ':graves', op.version, op.key)
    if object.fol ~= '' then announce_followers(P, op, left, false) end
    return {'ok'}
  end
  if shoot and is_followed(P, op) then set.fol = '1' end
  write_fields(object_key, set)
  redis.call('HSET', object_key, 'ver', op.version)
  redis.call('HDEL', object_key, 'class', 'pmsg')
  local taken = object.ver == '' and redis.call('HGET', P .. ':dead:' .. op.key, 'req')
  if taken and taken ~= '' then redis.call('HSET', object_key, 'req', taken) end
  redis.call('ZADD', P .. ':by_version', op.version, op.key)
  redis.call('HSET', P .. ':uids', op.uid, op.key)
  redis.call('SADD', P .. ':kinds', op.kind)
  redis.call('ZADD', P .. ':list:' .. op.kind, 0, member)
  redis.call('ZREM', P .. ':graves', op.key)
  redis.call('DEL', P .. ':dead:' .. op.key)
  if shoot and (set.seed or '') == '' and (set.del or '') == '' and (set.sched or '') ~= '' then
    redis.call('SADD', P .. ':schedulers', set.sched)
    redis.call('SADD', P .. ':pending:' .. set.sched, member)
  end
  if shoot and set.fol then announce_followers(P, op, left, false) end
  return {'ok'}
end

-- Announces again what an index ('by_version' or 'graves') holds above a version, a page at a time; answers the
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
      announce(P, key, version, object.uid, 'modified', true, object.past)
    else
      local dead = read_fields(P .. ':dead:' .. key, {'uid', 'left'})
      announce(P, key, version, dead.uid, 'deleted', true, dead.left)
    end
  end
  return {'ok', #found == 2 * op.limit and found[#found] or '0'}
end

-- Queues the work of a set of shoots again, a page at a time.
local function requeue(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local found = redis.call('SSCAN', P .. ':' .. op.set, op.cursor, 'COUNT', op.limit)
  for _, member in ipairs(found[2]) do
    enqueue(P, op.queue .. '.' .. string.gsub(member, '/', '.', 1))
  end
  return {'ok', found[1]}
end

-- Forgets removed objects whose removal is older than op.before and whose last request lies at or below op.floor.
local function bury(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local buried = 0
  for _, key in ipairs(redis.call('ZRANGE', P .. ':graves', 0, op.limit - 1)) do
    local dead = read_fields(P .. ':dead:' .. key, {'at', 'req'})
    if dead.at < op.before and (dead.req == '' or dead.req <= op.floor) then
      redis.call('DEL', P .. ':dead:' .. key)
      redis.call('ZREM', P .. ':graves', key)
      buried = buried + 1
    end
  end
  return {'ok', buried}
end

redis.register_function('gb_put', put)
redis.register_function('gb_put_many', put_many)
redis.register_function('gb_delete', delete)
redis.register_function{function_name = 'gb_rehearse', callback = rehearse, flags = {'no-writes'}}
redis.register_function('gb_bind', bind)
redis.register_function('gb_park', park)
redis.register_function('gb_wake', wake)
redis.register_function('gb_event', note_event)
redis.register_function('gb_accept_fence', accept_fence)
redis.register_function('gb_announce_again', announce_again)
redis.register_function{function_name = 'gb_list', callback = list, flags = {'no-writes'}}
redis.register_function{function_name = 'gb_usage', callback = usage, flags = {'no-writes'}}
redis.register_function{function_name = 'gb_waiting', callback = waiting, flags = {'no-writes'}}
redis.register_function{function_name = 'gb_outbox', callback = outbox, flags = {'no-writes'}}
redis.register_function('gb_lead', lead)
redis.register_function('gb_resign', resign)
redis.register_function('gb_trim', trim)
redis.register_function('gb_open', open_fence)
redis.register_function('gb_restore', restore)
redis.register_function('gb_reannounce', reannounce)
redis.register_function('gb_requeue', requeue)
redis.register_function('gb_bury', bury)
