-- What the bus knows better than a store that went back.

-- Puts back one document that the bus has in a higher version than the store (before the fence opens).
local function restore(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  if not leads(P, op.leader) then return {'other'} end
  local object_key, member = P .. ':o:' .. op.key, op.ns .. '/' .. op.name
  local object = read_fields(object_key, CURRENT)
  local recorded = object.ver ~= '' and tonumber(object.ver) or tonumber(redis.call('HGET', P .. ':dead:' .. op.key, 'ver') or '0')
  if recorded >= op.version then return {'known'} end
  local set, prior = op.set, prior_uids(P, op.key, op.uid)
  local shoot = op.kind == 'shoot'
  if shoot and object.ver ~= '' then
    stop_waiting(P, object_key, object.sched, member)
    redis.call('SREM', P .. ':pending:' .. object.sched, member)
  end
  local before, after = seeds_of(object.seed, object.sseed), seeds_of(set.seed or '', set.sseed or '')
  local left = seeds_left(op.deleted and audience_of(P, op, object) or before, after)
  if shoot then
    move_usage(P, member, before, after, object, {rq = set.rq or '', grp = set.grp or ''})
    move_migrating(P, member, is_migrating(object.seed, object.sseed), is_migrating(set.seed or '', set.sseed or ''))
  end
  if object.ver ~= '' and object.uid ~= op.uid then
    redis.call('HDEL', P .. ':uids', object.uid)
    redis.call('HDEL', object_key, 'last', 'rf', 'setters', 'tries', 'tried') -- they belong to another object of this name
  end
  if not shoot and not op.deleted then left = put_follower(P, op, object, object.ver == '') end
  reindex_set(P, ':refs:', object.refs, set.refs or '', op.key)
  reindex_set(P, ':owned:', object.own, set.own or '', op.key)
  reindex_claims(P, object.claims, set.claims or '', op.key)
  reindex_demand(P, object.demand, set.demand or '')
  if op.kind == 'resourcequota' then reindex_quota(P, op, object.quota, set.quota or '') end
  if op.deleted then
    if shoot then uncount_shoot(P, object_key, op.ns, op.name) end
    amounts.uncount_object(P, op.ns, object.size)
    redis.call('DEL', object_key)
    redis.call('ZREM', P .. ':list:' .. op.kind, member)
    redis.call('ZREM', P .. ':by_version', op.key)
    redis.call('HDEL', P .. ':uids', op.uid)
    write_fields(P .. ':dead:' .. op.key, {uid = op.uid, ver = op.version, at = op.now, left = left, prior = prior})
    if object.ver ~= '' then redis.call('HSET', P .. ':dead:' .. op.key, 'req', object.req) end
    redis.call('ZADD', P .. ':graves', op.version, op.key)
    recount(P, op.kind, op.ns, nil, true)
    if object.fol ~= '' then announce_followers(P, op, left, false) end
    return {'ok'}
  end
  if shoot and is_followed(P, op) then set.fol = '1' end
  if shoot then set.past = past_with(object.uid == op.uid and object.past or '', left) end
  set.prior = prior
  write_fields(object_key, set)
  redis.call('HSET', object_key, 'ver', op.version)
  redis.call('HDEL', object_key, 'class', 'pmsg')
  if shoot then count_shoot(P, object_key, op.ns, op.name) end
  redis.call('HSETNX', object_key, 'last', 'null') -- what was applied is not on the bus: unknown, which is not "nothing"
  amounts.count_object(P, object_key, op.ns)
  local taken = object.ver == '' and redis.call('HGET', P .. ':dead:' .. op.key, 'req')
  if taken and taken ~= '' then redis.call('HSET', object_key, 'req', taken) end
  redis.call('ZADD', P .. ':by_version', op.version, op.key)
  redis.call('HSET', P .. ':uids', op.uid, op.key)
  redis.call('SADD', P .. ':kinds', op.kind)
  redis.call('ZADD', P .. ':list:' .. op.kind, 0, member)
  if (set.quota or '') ~= '' then redis.call('HSET', object_key, 'status', quota_status(P, op.ns, set.quota)) end
  recount(P, op.kind, op.ns, nil, true)
  redis.call('ZREM', P .. ':graves', op.key)
  redis.call('DEL', P .. ':dead:' .. op.key)
  if shoot and (set.seed or '') == '' and (set.del or '') == '' and (set.sched or '') ~= '' then
    redis.call('SADD', P .. ':schedulers', set.sched)
    redis.call('SADD', P .. ':pending:' .. set.sched, member)
  end
  if shoot and set.fol then announce_followers(P, op, left, false) end
  return {'ok'}
end

register('restore', restore)
