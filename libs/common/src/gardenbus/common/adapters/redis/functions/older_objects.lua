-- Objects that a library of an older format has stored: put into the indexes that it did not keep.
--
-- `P:indexed` has the format whose indexes have every object. A relay walks `by_version` before it opens the store, and then
-- what was written meanwhile: each write moves its object to the end, and once the store is open no older library writes.

-- Objects of some kinds (a set) among the next ones after a version: the last version of the page, whether nothing comes
-- after it, then of each its key and its parts. Nothing is older where everything was indexed before.
local function older_objects(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  if redis.call('GET', P .. ':indexed') == tostring(FORMAT) then return {'ok', whole(op.after), 1} end
  local found = redis.call('ZRANGEBYSCORE', P .. ':by_version', '(' .. whole(op.after), '+inf', 'WITHSCORES', 'LIMIT', 0, op.limit)
  local reply = {'ok', found[#found] or whole(op.after), #found < 2 * op.limit and 1 or 0}
  for i = 1, #found, 2 do
    if op.kinds[string.match(found[i], '^[^:]*')] then
      reply[#reply + 1], reply[#reply + 2] = found[i], redis.call('HMGET', P .. ':o:' .. found[i], unpack(PARTS))
    end
  end
  return reply
end

-- A claim that two objects make, as nothing rejected it then, stays with the one that was found first.
local function claim_what_is_free(P, claims, key)
  for _, claim in ipairs(split_lines(claims)) do redis.call('HSETNX', P .. ':claims', claim, key) end
end

local function index_object(P, item)
  local object_key = P .. ':o:' .. item.key
  local object = read_fields(object_key, CURRENT)
  if tonumber(object.ver) ~= item.version then return end -- its write comes later in the walk
  reindex_set(P, ':refs:', object.refs, item.refs, item.key)
  claim_what_is_free(P, item.claims, item.key)
  reindex_demand(P, object.demand, item.demand)
  if item.kind == 'resourcequota' then reindex_quota(P, item, object.quota, item.quota) end
  if item.kind == 'shoot' and object.rq ~= item.rq then
    for seed in pairs(seeds_of(object.seed, object.sseed)) do requests.replace(P, seed, object.rq, item.rq) end
  end
  if item.kind == 'shoot' and object.grp ~= item.grp then
    for seed in pairs(seeds_of(object.seed, object.sseed)) do groups.recount(P, item.ns, seed, object.grp, item.grp) end
  end
  write_fields(object_key, {refs = item.refs, claims = item.claims, demand = item.demand, quota = item.quota, rq = item.rq,
                            alc = item.alc, grp = item.grp})
  if item.quota ~= '' then redis.call('HSET', object_key, 'status', quota_status(P, item.ns, item.quota)) end
end

-- Indexes the objects of a page; after the last one of an open store everything is indexed.
local function index_objects(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  for _, item in ipairs(op.items) do index_object(P, item) end
  if op.is_last and is_open(P) then redis.call('SET', P .. ':indexed', tostring(FORMAT)) end
  return {'ok'}
end

register('older_objects', older_objects, 'no-writes')
register('index_objects', index_objects, 'allow-oom')
