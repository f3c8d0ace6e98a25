-- Checks of a write, all of them before anything is changed.

-- exports: CURRENT, prior_uids, is_among, is_settled, bind_rejection, forget_settled, put_rejection

-- Fields that a write needs of the stored object.
CURRENT = {'ver', 'uid', 'gen', 'del', 'fin', 'seed', 'sseed', 'sched', 'refs', 'own', 'claims', 'req',
           'mark', 'fol', 'past', 'created', 'pend', 'op', 'cnt', 'quota', 'demand', 'after', 'size', 'rq', 'grp',
           'bd'}

-- Hosts of some seeds: they themselves, the shoots that they are (by their ManagedSeeds), the seeds that those
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

-- True if a seed is hosted by a shoot, however indirectly. Only shoots in the garden namespace can be seeds.
local function is_hosted_by(P, seed, shoot)
  return shoot.ns == 'garden' and carriers(P, {[seed] = true})['shoot:garden:' .. shoot.name] ~= nil
end

local PRIOR_MAX = 8

-- The uids of the last objects that had a name before the one with `uid`: each was removed. `dead`: the last of them, where
-- nothing of the name is there.
function prior_uids(P, key, uid, dead)
  local last = dead or read_fields(P .. ':o:' .. key, {'uid', 'prior'})
  if last.uid == '' and not dead then last = read_fields(P .. ':dead:' .. key, {'uid', 'prior'}) end
  if last.uid == '' or last.uid == uid then return last.prior end
  local uids = {}
  for each in string.gmatch(last.prior .. ' ' .. last.uid, '%S+') do
    if each ~= uid then uids[#uids + 1] = each end
  end
  return table.concat(uids, ' ', math.max(1, #uids - PRIOR_MAX + 1))
end

function is_among(uids, uid)
  return uid ~= '' and string.find(' ' .. uids .. ' ', ' ' .. uid .. ' ', 1, true) ~= nil
end

-- Whether what runs on a seed may receive the stored state: the object is there, or the store remembers that it left.
function is_settled(P, at, seed, uid)
  local object = read_fields(P .. ':o:' .. at.key, {'ver', 'uid', 'seed', 'sseed', 'refs', 'past', 'prior'})
  if object.ver == '' then return false end
  if uid ~= object.uid and is_among(object.prior, uid) then return true end
  local seeds = seeds_of(object.seed, object.sseed)
  if at.kind ~= 'shoot' then seeds = seeds_at(P, followed_shoot(at.kind, at.ns, at.name, object.refs)) end
  if seeds[seed] then return true end
  return (uid == '' or uid == object.uid) and seeds_with({}, object.past)[seed] ~= nil
end

-- What is unknown of shoots: `by_key`, pairs of seed and uid, `by_seed`, their "<ns>/<name>", and `requested`, the lines of what
-- each requests by "<seed> <ns>/<name>"; nil where there is nothing.
local function unknown_shoots_index(P)
  if redis.call('EXISTS', P .. ':unknown') == 0 then return end
  if unknown_index then return unknown_index end
  unknown_index = {by_key = {}, by_seed = {}, requested = {}}
  local fields = redis.call('HGETALL', P .. ':unknown')
  for i = 1, #fields, 2 do
    local seed, ns, name = string.match(fields[i], '^(%S+) shoot:([^:]*):(.*)$')
    if seed then
      local at = {key = 'shoot:' .. ns .. ':' .. name, kind = 'shoot', ns = ns, name = name}
      local held = cjson.decode(fields[i + 1])
      local uid = held.uid
      if not is_settled(P, at, seed, uid) then
        unknown_index.by_key[at.key] = unknown_index.by_key[at.key] or {}
        table.insert(unknown_index.by_key[at.key], {seed = seed, uid = uid})
        unknown_index.by_seed[seed] = unknown_index.by_seed[seed] or {}
        table.insert(unknown_index.by_seed[seed], ns .. '/' .. name)
        unknown_index.requested[seed .. ' ' .. ns .. '/' .. name] = held.rq
      end
    end
  end
  return unknown_index
end

-- Shoots that run on a seed and are unknown, as `unknown:<ns>/<name>`: they count where a seed must be empty.
local function unknown_shoots(P, seed)
  local index, found = unknown_shoots_index(P), {}
  for i, member in ipairs(index and index.by_seed[seed] or {}) do found[i] = 'unknown:' .. member end
  table.sort(found)
  return found
end

unknown_places = function(P, seed)
  local index, places = unknown_shoots_index(P), 0
  for _, member in ipairs(index and index.by_seed[seed] or {}) do
    if redis.call('SISMEMBER', P .. ':usage:' .. seed, member) == 0 then places = places + 1 end
  end
  return places
end

requests.of_unknown = function(P, seed, except)
  local index, sums = unknown_shoots_index(P), {}
  for _, member in ipairs(index and index.by_seed[seed] or {}) do
    local lines = index.requested[seed .. ' ' .. member]
    if lines and member ~= except and redis.call('SISMEMBER', P .. ':usage:' .. seed, member) == 0 then
      for resource, amount in requests.each(lines) do sums[resource] = (sums[resource] or 0) + tonumber(amount) end
    end
  end
  return sums
end

-- Reason for which a shoot that runs on a seed, and that the store has lost there, may not come to this one, or nil; and whether
-- it is this one, where it may come whatever else is so: it takes a place there already.
local function unknown_rejection(P, shoot, uid, seed)
  local index, is_here = unknown_shoots_index(P), false
  for _, runs in ipairs(index and index.by_key['shoot:' .. shoot.ns .. ':' .. shoot.name] or {}) do
    if runs.seed ~= seed or runs.uid ~= uid then return 'runs-elsewhere' end
    is_here = true
  end
  return nil, is_here
end

-- Reason for which a seed accepts no more shoots (`shoot` has its ns and name), or nil. `placed`: what is stored of the shoot, its
-- `uid` and the mark `after` of recovery.lua; nil for one that is adopted. `requested`: the lines of what it requests.
function bind_rejection(P, shoot, seed, generation, placed, requested)
  local stored = read_fields(P .. ':o:seed:_:' .. seed, {'ver', 'del', 'gate', 'cap', 'mark', 'alc'})
  if stored.ver == '' or stored.del ~= '' or stored.mark ~= '' then return 'seed-gone' end
  if is_hosted_by(P, seed, shoot) then return 'circular' end
  if placed then
    local rejection, is_here = unknown_rejection(P, shoot, placed.uid, seed)
    if rejection or is_here then return rejection end
    rejection = recovery_rejection(P, placed.after, seed)
    if rejection then return rejection end
  end
  if generation and tonumber(stored.gate) ~= generation then return 'seed-changed' end
  local usage, member = P .. ':usage:' .. seed, shoot.ns .. '/' .. shoot.name
  if stored.cap ~= '' then
    local taken = redis.call('SCARD', usage) + unknown_places(P, seed)
    if not placed then taken = taken - 1 end -- what is adopted takes its place already
    if taken >= tonumber(stored.cap) and redis.call('SISMEMBER', usage, member) == 0 then return 'full' end
  end
  if requests.are_lacking(P, seed, member, stored.alc, requested, '') and redis.call('SISMEMBER', usage, member) == 0 then
    return 'short'
  end
end

-- Reason for which a shoot may not be where it is reported to be, or nil: fewer than for a seed that it is assigned to.
local function report_rejection(P, shoot, seed)
  if (redis.call('HGET', P .. ':o:seed:_:' .. seed, 'mark') or '') ~= '' then return 'seed-gone' end
  if is_hosted_by(P, seed, shoot) then return 'circular' end
end

-- Reason by which the seeds that a put names reject it, or nil: of a shoot, and of a ManagedSeed's shoot.
local function seeds_rejection(P, op, object)
  local seed, reported, requested = op.set.seed or '', op.set.sseed or '', op.set.rq or object.rq
  if seed ~= '' and seed ~= object.seed then
    local placed = not op.unknown and {uid = object.uid ~= '' and object.uid or op.uid, after = op.base == 0 and op.set.after or object.after}
    local rejection = bind_rejection(P, op, seed, op.gate_seen, placed, requested)
    if rejection then return rejection end
    local lines, usage = op.set.grp or object.grp, P .. ':usage:' .. seed
    if placed and lines ~= '' and redis.call('SISMEMBER', usage, op.ns .. '/' .. op.name) == 0 and not groups.are_guarded(op) then
      return 'unfenced'
    end
  end
  if requested ~= object.rq then -- more than before only where the seeds have it
    for on in pairs(seeds_of(object.seed, object.sseed)) do
      local allocatable = redis.call('HGET', P .. ':o:seed:_:' .. on, 'alc') or ''
      if requests.are_lacking(P, on, op.ns .. '/' .. op.name, allocatable, requested, object.rq) then return 'short' end
    end
  end
  if reported ~= '' and reported ~= object.sseed and reported ~= object.seed then
    local rejection = report_rejection(P, op, reported)
    if rejection then return rejection end
  end
  local shoot = op.kind == 'managedseed' and op.ns == 'garden' and op.set.refs or ''
  if shoot ~= '' and shoot ~= object.refs and carriers(P, seeds_at(P, shoot))['seed:_:' .. op.name] then
    return 'circular'
  end
end

-- The first guard that does not hold, as a reply, or nil.
local function guard_rejection(P, op, object)
  for i, guard in ipairs(op.guards) do
    if guard.version then
      local version = together and together.versions[guard.key] or redis.call('HGET', P .. ':o:' .. guard.key, 'ver') or '0'
      if together then together.versions[guard.key] = version end
      if tonumber(version) ~= guard.version then return {'outdated', i, version} end
    elseif guard.claim then
      local holder = redis.call('HGET', P .. ':claims', guard.claim)
      if holder and (redis.call('HGET', P .. ':o:' .. holder, 'del') or '') == '' then
        return {'held', i, holder}
      end
    elseif guard.quota then
      local exceeded = op.base == 0 and quota_rejection(P, op, i)
      if exceeded then return exceeded end
    elseif guard.count then
      local found = redis.call('ZCARD', P .. ':list:' .. guard.count)
      if op.base == 0 and found >= guard.most then return {'counted', i, found} end
    elseif guard.stored then
      local beyond = amounts.stored_rejection(P, op, object, guard.stored, i)
      if beyond then return beyond end
    elseif guard.groups then
      if groups.have_changed(P, op.ns, op.set.grp or object.grp, guard.groups) then return {'regrouped', i} end
    elseif guard.demand then
      local beyond = demand_rejection(P, op, object, guard, i)
      if beyond then return beyond end
    else
      local members = redis.call('SCARD', P .. ':' .. guard.set)
      if members > 0 then return {'guarded', i, members, redis.call('SRANDMEMBER', P .. ':' .. guard.set, 3)} end
      local seed = string.match(guard.set, '^usage:(.*)$')
      local left = seed and unknown_shoots(P, seed) or {}
      if #left > 0 then return {'guarded', i, #left, {left[1], left[2], left[3]}} end
      if seed and recovery_id(P) then return {'rejected', 'emptiness-unknown'} end
    end
  end
end

-- A seed that runs an object of this key which the store has lost, or nil.
local function seed_with_unknown(P, key)
  if read_once('EXISTS', P .. ':unknown') == 0 then return end
  for _, field in ipairs(redis.call('HKEYS', P .. ':unknown')) do
    local seed, unknown = string.match(field, '^(%S+) (.*)$')
    if unknown == key then return seed end
  end
end

-- Forgets what was unknown of a stored object where it is settled by now: it would be unknown again once the object is
-- removed. What runs on a seed that the object never was on stays unknown.
function forget_settled(P, at)
  if redis.call('EXISTS', P .. ':unknown') == 0 then return end
  for _, field in ipairs(redis.call('HKEYS', P .. ':unknown')) do
    local seed, unknown = string.match(field, '^(%S+) (.*)$')
    if unknown == at.key and is_settled(P, at, seed, cjson.decode(redis.call('HGET', P .. ':unknown', field)).uid) then
      redis.call('HDEL', P .. ':unknown', field)
    end
  end
end

-- Rejection of a put (or of a deletion, with nothing to set), as a reply, or nil.
function put_rejection(P, op, object)
  local exists = object.ver ~= ''
  if op.base == 0 and op.kind == 'shoot' then op.set.after = ordered_after(P, op.origin) end
  if op.origin ~= '' then
    local taken = exists and object.req or op.dead and op.dead.req or redis.call('HGET', P .. ':dead:' .. op.key, 'req') or ''
    if taken ~= '' and op.origin <= taken then return {'superseded', taken} end
  end
  if op.base == 0 and exists then return {'exists'} end
  if op.base == 0 and op.kind == 'shoot' and not op.unknown then
    local seed = seed_with_unknown(P, op.key)
    if seed then return {'unknown', seed} end
  end
  if op.base > 0 and not exists then return {'gone'} end
  if op.base > 0 and tonumber(object.ver) ~= op.base then return {'conflict', object.ver} end
  local unguarded = guard_rejection(P, op, object)
  if unguarded then return unguarded end
  for _, claim in ipairs(split_lines(op.set.claims)) do
    local holder = redis.call('HGET', P .. ':claims', claim)
    if holder and holder ~= op.key then return {'claimed', claim, holder} end
  end
  local rejection = seeds_rejection(P, op, object)
  if rejection then return {'rejected', rejection} end
  if (op.set.mark or '') ~= '' and object.mark == '' then -- a seed is marked for removal only while it is empty
    local usage = P .. ':usage:' .. op.name
    local shoots = redis.call('SCARD', usage)
    if shoots > 0 then return {'in-use', shoots, redis.call('SRANDMEMBER', usage)} end
    local left = unknown_shoots(P, op.name)
    if #left > 0 then return {'in-use', #left, left[1]} end
    if recovery_id(P) then return {'rejected', 'emptiness-unknown'} end
  end
end

-- Dry run of a put or a deletion: its rejection, and nothing is written.
local function dry_run(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  return put_rejection(P, op, read_fields(P .. ':o:' .. op.key, CURRENT)) or {'ok'}
end

register('dry_run', dry_run, 'no-writes')
