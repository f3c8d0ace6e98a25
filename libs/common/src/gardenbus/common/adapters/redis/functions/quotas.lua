-- Limits on how many objects of a kind a namespace has (ResourceQuotas), and demands: sums of what objects want, kept for
-- each object that they name (what shoots want through a binding).
--
-- The field `quota` of a ResourceQuota has spec.hard as JSON in its first line, then for each kind that it limits
-- `<kind> <most> <resource as JSON>`. What is there is counted in the list of the kind, which each write keeps. The field
-- `demand` of an object has lines `<key> <count> <unit>`.

-- exports: reindex_quota, quota_status, recount, quota_rejection, reindex_demand, demand_rejection, demand

local function count_in(P, kind, ns)
  return redis.call('ZLEXCOUNT', P .. ':list:' .. kind, '[' .. ns .. '/', '(' .. ns .. '0') -- '0' follows '/'
end

-- Calls visit(kind, most, resource) for each kind that a ResourceQuota limits.
local function each_limit(quota, visit)
  for i, line in ipairs(split_lines(quota)) do
    if i > 1 then visit(string.match(line, '^(%S+) (%S+) (.*)$')) end
  end
end

function reindex_quota(P, op, before, after)
  each_limit(before, function(kind, _, resource)
    redis.call('HDEL', P .. ':hard:' .. op.ns .. ':' .. kind, op.name .. ' ' .. resource)
  end)
  each_limit(after, function(kind, most, resource)
    redis.call('HSET', P .. ':hard:' .. op.ns .. ':' .. kind, op.name .. ' ' .. resource, most)
  end)
end

-- The inside of a ResourceQuota's status.
function quota_status(P, ns, quota)
  local used = {}
  each_limit(quota, function(kind, _, resource)
    used[#used + 1] = resource .. ':"' .. whole(count_in(P, kind, ns)) .. '"'
  end)
  return '"hard":' .. split_lines(quota)[1] .. ',"used":{' .. table.concat(used, ',') .. '}'
end

-- Writes and announces the status of the ResourceQuotas that count a kind in a namespace, but for `own`; before the store
-- is open (`quiet`) it only writes.
function recount(P, kind, ns, own, quiet)
  local names, last = redis.call('HKEYS', P .. ':hard:' .. ns .. ':' .. kind), ''
  table.sort(names)
  for _, field in ipairs(names) do
    local name = string.match(field, '^%S+')
    local key = 'resourcequota:' .. ns .. ':' .. name
    local object = name ~= last and key ~= own and read_fields(P .. ':o:' .. key, {'quota', 'status', 'uid'})
    last = name
    local status = object and object.quota ~= '' and quota_status(P, ns, object.quota)
    if status and status ~= object.status then
      redis.call('HSET', P .. ':o:' .. key, 'status', status)
      if not quiet then
        local version = next_version(P, key)
        redis.call('HSET', P .. ':o:' .. key, 'ver', version)
        announce(P, key, version, object.uid, 'modified', false, '')
      end
    end
  end
end

-- The first ResourceQuota that a new object would exceed, as a reply to guard `i`, or nil.
function quota_rejection(P, op, i)
  local limits = redis.call('HGETALL', P .. ':hard:' .. op.ns .. ':' .. op.kind)
  if #limits == 0 then return end
  local used, found = count_in(P, op.kind, op.ns), nil
  for at = 1, #limits, 2 do
    if used >= tonumber(limits[at + 1]) and (not found or limits[at] < limits[found]) then found = at end
  end
  if found then
    local name, resource = string.match(limits[found], '^(%S+) (.*)$')
    return {'exceeded', i, name, resource, used, tonumber(limits[found + 1])}
  end
end

-- Adds `sign` times each line of a `demand` to what add(key, unit, count) keeps.
local function each_demand(demand, sign, add)
  for _, line in ipairs(split_lines(demand)) do
    local key, count, unit = string.match(line, '^(%S+) (%d+) (.*)$')
    if key then add(key, unit, sign * tonumber(count)) end -- none in a line of a name that no object can have
  end
end

local MOST_EXACT = 2 ^ 53

-- Never fails, as whoever calls it has written already: where 64 bits have no room for a sum, or for a count that an older
-- version stored, it stays as it is. Nothing is kept below 0, so that it is 0 again when the last shoot is gone.
local function add_demand(demand, unit, count)
  local sum = redis.pcall('HINCRBY', demand, unit, whole(count))
  if type(sum) == 'number' and sum <= 0 then redis.call('HDEL', demand, unit) end
  return type(sum) == 'number'
end

-- Adds counts that were collected: their sum, or where there is no room for it each that there is room for.
local function add_collected(collected)
  local sum = 0
  for _, count in ipairs(collected) do sum = sum + count end
  if sum < MOST_EXACT and add_demand(collected.demand, collected.unit, sum) then return end
  for _, count in ipairs(collected) do add_demand(collected.demand, collected.unit, count) end
end

function reindex_demand(P, before, after)
  if before == after then return end
  local function add(key, unit, count)
    local demand = P .. ':demand:' .. key
    if not together then return add_demand(demand, unit, count) end
    local place = demand .. ' ' .. unit
    local collected = together.counts[place] or {demand = demand, unit = unit, add = add_collected}
    collected[#collected + 1], together.counts[place] = count, collected
  end
  each_demand(after, 1, add)
  each_demand(before, -1, add)
end

-- The sums of the demands of all that refers to a key (in a namespace, '': in all), and the keys that were summed.
local function demand_of(P, referred, ns)
  local sums, summed = {}, {}
  for _, key in ipairs(redis.call('SMEMBERS', P .. ':refs:' .. referred)) do
    if ns == '' or string.match(key, '^[^:]*:([^:]*):') == ns then
      summed[key] = true
      local demand = redis.call('HGETALL', P .. ':demand:' .. key)
      for at = 1, #demand, 2 do sums[demand[at]] = (sums[demand[at]] or 0) + tonumber(demand[at + 1]) end
    end
  end
  return sums, summed
end

-- What of a guard on demands a write would exceed, as a reply to guard `i`, or nil: the sum of counts times the amounts
-- that the guard gives each unit, for each of its limits. A unit that it does not know has it read again.
function demand_rejection(P, op, object, guard, i)
  local sums, summed = demand_of(P, guard.demand, guard.ns)
  local function add(key, unit, count)
    if summed[key] then sums[unit] = (sums[unit] or 0) + count end
  end
  each_demand(op.set.demand or object.demand, 1, add)
  each_demand(object.demand, -1, add)
  local reply = {'beyond', i}
  local totals = {}
  for unit, count in pairs(sums) do
    local amounts = guard.amounts[unit]
    if not amounts and count > 0 then return {'outdated', i, object.ver ~= '' and object.ver or '0'} end
    for metric, amount in pairs(amounts or {}) do totals[metric] = (totals[metric] or 0) + count * amount end
  end
  for _, limit in ipairs(guard.limits) do
    if (totals[limit[1]] or 0) > limit[2] then reply[#reply + 1] = limit[1] end
  end
  if #reply > 2 then return reply end
end

function demand(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local reply = {'ok'}
  for unit, count in pairs((demand_of(P, op.key, op.of))) do
    reply[#reply + 1], reply[#reply + 2] = unit, whole(count)
  end
  return reply
end

register('demand', demand, 'no-writes')
