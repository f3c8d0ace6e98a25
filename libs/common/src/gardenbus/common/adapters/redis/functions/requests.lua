-- What shoots request of the resources of their seeds. `taken:<seed>` has, by resource, the sum over the shoots in `usage:<seed>`, and
-- changes wherever usage does. The fields `rq` of a shoot and `alc` of a seed have lines "<resource> <amount>", in units of account.
-- A seed whose sums changed is in `usage_changed` as "<seed> requests", too. What unknown shoots of a seed request, but for one of
-- them, is `requests.of_unknown` (write_checks.lua).

-- exports: requests

requests = {}

do
  -- Resources and amounts of such lines.
  function requests.each(lines)
    return string.gmatch(lines or '', '(%S+) (%d+)')
  end

  local function amounts_of(lines)
    local amounts = {}
    for resource, amount in requests.each(lines) do amounts[resource] = tonumber(amount) end
    return amounts
  end

  local function add_to(P, seed, lines, sign)
    for resource, amount in requests.each(lines) do
      if redis.call('HINCRBY', P .. ':taken:' .. seed, resource, sign .. amount) <= 0 then
        redis.call('HDEL', P .. ':taken:' .. seed, resource)
      end
    end
  end

  -- Has the sums of a seed read again by those who read usage that changed since a version.
  function requests.announce(P, seed, version)
    redis.call('ZADD', P .. ':usage_changed', version, seed .. ' requests')
  end

  -- Adds what a shoot requests to a seed that it has come to with this version of usage, or (sign '-') takes it off.
  function requests.add(P, seed, lines, sign, version)
    if lines == '' then return end
    add_to(P, seed, lines, sign)
    requests.announce(P, seed, version)
  end

  -- Replaces what a shoot requests of a seed that it stays on; returns whether less of a resource is taken by it.
  function requests.replace(P, seed, before, after)
    add_to(P, seed, before, '-')
    add_to(P, seed, after, '')
    requests.announce(P, seed, redis.call('INCR', P .. ':usage_version'))
    local wanted = amounts_of(after)
    for resource, amount in requests.each(before) do
      if (wanted[resource] or 0) < tonumber(amount) then return true end
    end
    return false
  end

  -- True if a seed with `allocatable` lacks what a shoot ("<ns>/<name>") requests beyond what it takes there already (`counted`).
  function requests.are_lacking(P, seed, member, allocatable, lines, counted)
    if lines == '' then return false end
    local stated, already, unknown = amounts_of(allocatable), amounts_of(counted), requests.of_unknown(P, seed, member)
    for resource, text in requests.each(lines) do
      local more = tonumber(text) - (already[resource] or 0)
      if more > 0 then
        local taken = tonumber(redis.call('HGET', P .. ':taken:' .. seed, resource) or '0') + (unknown[resource] or 0)
        if taken + more > (stated[resource] or 0) then return true end
      end
    end
    return false
  end

  -- Sums of a seed as a flat list, unknown shoots included.
  function requests.sums(P, seed)
    local sums, unknown = redis.call('HGETALL', P .. ':taken:' .. seed), requests.of_unknown(P, seed)
    for i = 1, #sums, 2 do
      if unknown[sums[i]] then sums[i + 1] = whole(tonumber(sums[i + 1]) + unknown[sums[i]]) end
      unknown[sums[i]] = nil
    end
    for resource, amount in pairs(unknown) do sums[#sums + 1] = resource; sums[#sums + 1] = whole(amount) end
    return sums
  end
end
