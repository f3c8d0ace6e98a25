-- Groups of shoots, which rules between shoots are about. `group:<ns>:<group>` has, by seed, the members in `usage:<seed>`, and by
-- "<topology key>!<seed>" those shoots there that keep members off; it changes wherever usage does. Its field `#` is the version of
-- the group: it grows with each change, and one that comes anew begins at the version of usage, which it had never reached before.
-- The field `grp` of a shoot has lines "<group> <1: is a member, else 0> <topology keys by which it keeps members off>" of every
-- group that it is a member of or has a rule about: a write that places it has to be based on their versions.

do
  -- What a shoot that counts nowhere requests and belongs to.
  groups.NONE = {rq = '', grp = ''}

  local function each_group(lines)
    return string.gmatch(lines or '', '(%S+) ([01]) ?([^\n]*)')
  end

  local function hash_of(P, ns, group)
    return P .. ':group:' .. ns .. ':' .. group
  end

  local function version_of(P, ns, group)
    return tonumber(redis.call('HGET', hash_of(P, ns, group), '#') or '0')
  end

  local function change(P, ns, group, fields, sign, usage_version)
    local hash, before, after = hash_of(P, ns, group), version_of(P, ns, group), 0
    for _, field in ipairs(fields) do
      if redis.call('HINCRBY', hash, field, sign .. '1') <= 0 then redis.call('HDEL', hash, field) end
    end
    if redis.call('HLEN', hash) == (before > 0 and 1 or 0) then
      redis.call('DEL', hash)
    else
      after = before > 0 and before + 1 or usage_version
      redis.call('HSET', hash, '#', whole(after))
    end
    groups.made = groups.made or {}
    local made = groups.made[ns .. ' ' .. group]
    if not made then
      made = {from = before, count = 0}
      groups.made[ns .. ' ' .. group] = made
    end
    made.count, made.version = made.count + 1, after
    if redis.call('EXISTS', P .. ':awaited:' .. ns .. ':' .. group) == 1 then groups.are_awaited = true end
  end

  -- Counts a shoot in its groups (lines) on a seed that it has come to with this version of usage, or (sign '-') no longer.
  function groups.count(P, ns, seed, lines, sign, usage_version)
    for group, is_member, keys in each_group(lines) do
      local fields = {}
      if is_member == '1' then fields[1] = seed end
      for key in string.gmatch(keys, '[^,]+') do fields[#fields + 1] = key .. '!' .. seed end
      if #fields > 0 then change(P, ns, group, fields, sign, usage_version) end
    end
  end

  -- Counts a shoot that stays on a seed in other groups than before: each of the two changes takes a version of usage.
  function groups.recount(P, ns, seed, before, after)
    groups.count(P, ns, seed, before, '-', redis.call('INCR', P .. ':usage_version'))
    groups.count(P, ns, seed, after, '', redis.call('INCR', P .. ':usage_version'))
  end

  -- True unless each group of a shoot (lines) is as it was `seen`: by group its version, and how many changes by shoots that
  -- this very call has placed before were counted upon it.
  function groups.have_changed(P, ns, lines, seen)
    for group in each_group(lines) do
      local stated, version = seen and seen[group], version_of(P, ns, group)
      if not stated then return true end
      local made = groups.made and groups.made[ns .. ' ' .. group]
      if stated[2] == 0 then
        if made or version ~= stated[1] then return true end
      elseif not made or made.from ~= stated[1] or made.count ~= stated[2] or made.version ~= version then
        return true
      end
    end
    return false
  end

  -- True if a put has a guard on the groups of its shoot (guard_rejection).
  function groups.are_guarded(op)
    for _, guard in ipairs(op.guards) do
      if guard.groups then return true end
    end
    return false
  end

  -- Has a waiting shoot ("<ns>/<name>") woken by changes of its groups (lines), or (command 'SREM') no longer.
  function groups.await(P, member, lines, command)
    local ns = string.match(member, '^[^/]*')
    for group in each_group(lines) do redis.call(command, P .. ':awaited:' .. ns .. ':' .. group, member) end
  end
end
