-- On which seeds a shoot counts, how many each seed has, and which shoots are on their way from one to another.

-- exports: seeds_of, seeds_at, seeds_left, seeds_with, move_usage, is_migrating, move_migrating, unknown_places
-- exports: usage_reply, change_usage, usage

function seeds_of(seed, status_seed)
  local seeds = {}
  if seed ~= '' then seeds[seed] = true end
  if status_seed ~= '' then seeds[status_seed] = true end
  return seeds
end

-- The seeds that a stored shoot concerns, by its key (nil: none).
function seeds_at(P, shoot)
  if not shoot then return {} end
  local on = read_fields(P .. ':o:' .. shoot, {'seed', 'sseed'})
  return seeds_of(on.seed, on.sseed)
end

-- The seeds in `before` that are not in `after`, joined: those have to learn that the shoot is no longer theirs.
function seeds_left(before, after)
  local left = {}
  for seed in pairs(before) do
    if not after[seed] then left[#left + 1] = seed end
  end
  table.sort(left)
  return table.concat(left, ',')
end

-- A set of seeds with those in joined text.
function seeds_with(seeds, joined)
  for seed in string.gmatch(joined, '[^,]+') do seeds[seed] = true end
  return seeds
end

-- Adds a shoot to a seed's usage or removes it. `was` and `now` have what it requested and requests (`rq`), and its groups (`grp`).
-- Returns whether a place or some of a resource became free, or a group changed that somebody waits for.
function move_usage(P, member, before, after, was, now)
  local freed, ns = false, string.match(member, '^[^/]*')
  for seed in pairs(before) do
    if not after[seed] then
      if redis.call('SREM', P .. ':usage:' .. seed, member) == 1 then
        freed = true
        local version = redis.call('INCR', P .. ':usage_version')
        redis.call('ZADD', P .. ':usage_changed', version, seed)
        requests.add(P, seed, was.rq, '-', version)
        groups.count(P, ns, seed, was.grp, '-', version)
      end
    else
      if was.rq ~= now.rq and requests.replace(P, seed, was.rq, now.rq) then freed = true end
      if was.grp ~= now.grp then groups.recount(P, ns, seed, was.grp, now.grp) end
    end
  end
  for seed in pairs(after) do
    if not before[seed] and redis.call('SADD', P .. ':usage:' .. seed, member) == 1 then
      local version = redis.call('INCR', P .. ':usage_version')
      redis.call('ZADD', P .. ':usage_changed', version, seed)
      requests.add(P, seed, now.rq, '', version)
      groups.count(P, ns, seed, now.grp, '', version)
    end
  end
  freed = freed or groups.are_awaited
  if freed then redis.call('INCR', P .. ':gain_usage') end
  return freed
end

function is_migrating(seed, status_seed)
  return seed ~= '' and status_seed ~= '' and seed ~= status_seed
end

-- Keeps the set of migrating shoots; returns whether the shoot began or ended to be one.
function move_migrating(P, member, before, after)
  if before == after then return false end
  redis.call(after and 'SADD' or 'SREM', P .. ':migrating', member)
  return true
end

-- Number of unknown shoots that take a place of a seed, beside those that are stored on it (write_checks.lua).

-- Usage that changed after `since`, and the unblock indexes; nothing but zeros when nobody needs them (`since` nil).
function usage_reply(P, since)
  if not since then return {0, 0, 0} end
  local reply = {counter(P, 'usage_version'), counter(P, 'gain_objects'), counter(P, 'gain_usage')}
  for _, changed in ipairs(redis.call('ZRANGEBYSCORE', P .. ':usage_changed', '(' .. since, '+inf')) do
    local requested = string.match(changed, '^(%S+) requests$')
    reply[#reply + 1] = changed
    reply[#reply + 1] = requested and requests.sums(P, requested)
                        or redis.call('SCARD', P .. ':usage:' .. changed) + unknown_places(P, changed)
  end
  return reply
end

-- Has a seed's usage read again, as the unknown shoots on it changed; `freed`: a place became free.
function change_usage(P, seed, freed)
  local version = redis.call('INCR', P .. ':usage_version')
  redis.call('ZADD', P .. ':usage_changed', version, seed)
  requests.announce(P, seed, version)
  if freed then redis.call('INCR', P .. ':gain_usage') end
end

-- With `seed`: what the shoots of that one request of its resources.
function usage(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  return reject_when_closed(P) or op.seed and requests.sums(P, op.seed) or usage_reply(P, op.since)
end

register('usage', usage, 'no-writes')
