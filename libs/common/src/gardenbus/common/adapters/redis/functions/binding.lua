-- Shoots are placed on seeds.

local PLACED = {'ver', 'uid', 'gen', 'del', 'seed', 'sseed', 'fin', 'sched', 'fol', 'class', 'pend', 'tries',
                'created', 'op', 'cnt', 'after', 'size', 'rq', 'grp'}

-- Binds one shoot under numbers that nobody else has had: `version` and `usage_version`. The Event that says so goes
-- with the change of the shoot, in one outbox entry. Returns the outcome, whether the seed's usage grew by it, and whether
-- something follows the shoot.
local function bind_one(P, item, version, usage_version, unblock_index)
  local key = 'shoot:' .. item.ns .. ':' .. item.name
  local object_key, member = P .. ':o:' .. key, item.ns .. '/' .. item.name
  local object = read_fields(object_key, PLACED)
  if object.ver == '' or object.uid ~= item.uid then return 'gone' end
  if object.del ~= '' then return 'deleting' end
  if object.seed ~= '' then return 'scheduled' end
  if tonumber(object.gen) ~= item.gen then return 'changed' end
  local rejection = bind_rejection(P, item, item.seed, item.gate, object, object.rq)
  if rejection then return rejection == 'short' and 'full' or rejection end
  if object.grp ~= '' and groups.have_changed(P, item.ns, object.grp, item.groups) then return 'group-changed' end

  redis.call('ZADD', P .. ':by_version', version, key)
  local finalizers = object.fin
  local held = false
  for _, finalizer in ipairs(split_lines(finalizers)) do held = held or finalizer == 'gardener' end
  if not held then finalizers = finalizers == '' and 'gardener' or finalizers .. '\ngardener' end
  if object.class ~= '' then stop_waiting(P, object_key, object.sched, member) end
  redis.call('SREM', P .. ':pending:' .. object.sched, member)
  local counted = move_shoot_count(P, item.ns, item.name, {
    created = object.created, del = '', pend = '', seed = item.seed, op = object.op, cnt = object.cnt})
  if item.spec then
    local size = amounts.count_as(P, item.ns, object.size, amounts.size_with(object_key, object, {spec = item.spec}))
    redis.call('HSET', object_key, 'ver', version, 'gen', item.gen + 1, 'seed', item.seed, 'fin', finalizers,
               'spec', item.spec, 'why', item.why or '', 'cnt', counted, 'size', size)
  else
    redis.call('HSET', object_key, 'ver', version, 'gen', item.gen + 1, 'seed', item.seed, 'fin', finalizers,
               'why', item.why or '', 'cnt', counted)
  end
  if object.pend ~= '' or object.tries ~= '' then redis.call('HDEL', object_key, 'pend', 'pmsg', 'tries', 'tried') end
  if unknown_index and unknown_index.by_key[key] then unknown_index = nil end
  local is_new = redis.call('SADD', P .. ':usage:' .. item.seed, member) == 1
  if is_new then
    redis.call('ZADD', P .. ':usage_changed', usage_version, item.seed)
    requests.add(P, item.seed, object.rq, '', usage_version)
    groups.count(P, item.ns, item.seed, object.grp, '', usage_version)
  end
  carried = item.trace or ''
  add_entry(P, 'k', key, 'v', version, 'u', object.uid, 'a', 'modified', 'b', '1', 'l', '',
            'g', unblock_index, 'to', item.seed, 'by', item.by, 'at', item.now)
  if is_migrating(item.seed, object.sseed) then
    move_migrating(P, member, false, true)
    enqueue(P, 'migration.' .. item.ns .. '.' .. item.name)
  end
  return 'bound', is_new, object.fol ~= ''
end

-- Places up to 100 shoots; every item is checked on its own.
local function bind(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P, op.outbox_max)
  if closed then return closed end
  local count, unblock_index = #op.items, counter(P, 'gain_objects')
  local last_version = redis.call('INCRBY', P .. ':version', count)
  local last_usage = redis.call('INCRBY', P .. ':usage_version', count)
  local version, usage_version = last_version - count, last_usage - count
  local outcomes, followed = {}, {}
  for i, item in ipairs(op.items) do
    local outcome, is_new, is_followed_by = bind_one(P, item, version + 1, usage_version + 1, unblock_index)
    outcomes[i] = outcome
    if outcome == 'bound' then version = version + 1 end
    if is_new then usage_version = usage_version + 1 end
    if is_followed_by then followed[#followed + 1] = item end
  end
  -- Numbers are taken first and those not used given back, so that none is used twice wherever this ends.
  if version < last_version then redis.call('DECRBY', P .. ':version', last_version - version) end
  if usage_version < last_usage then redis.call('DECRBY', P .. ':usage_version', last_usage - usage_version) end
  carried = ''
  if groups.are_awaited then
    redis.call('INCR', P .. ':gain_usage')
    activate_schedulers(P)
  end
  for _, item in ipairs(followed) do announce_followers(P, item, '', true) end -- their versions come after all these
  return {'ok', outcomes, usage_reply(P, op.since)}
end

register('bind', bind)
