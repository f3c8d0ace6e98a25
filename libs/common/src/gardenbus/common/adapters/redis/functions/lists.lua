-- Objects are listed, by their names.

-- exports: named

-- A page of objects of a kind, with the version and unblock index that stood when it was read.
local function list(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
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

-- The namespaces that have an object of a name, of so many namespaces after one; first the last of these, '' at the end.
function named(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local objects, after, reply = P .. ':list:' .. op.kind, op.after, {''}
  for _ = 1, op.limit do
    local first = after ~= '' and '[' .. after .. '0' or '-' -- '0' follows '/'
    local member = redis.call('ZRANGEBYLEX', objects, first, '+', 'LIMIT', 0, 1)[1]
    if not member then return reply end
    after = string.match(member, '^[^/]*')
    if redis.call('ZSCORE', objects, after .. '/' .. op.name) then reply[#reply + 1] = after end
  end
  reply[1] = after
  return reply
end

-- Names that begin with a prefix in so many namespaces after one, or in one alone: of each namespace its first names while
-- there is room in all, and its last, so that what those in the reply have in common is what all have in common.
-- First comes the last of these namespaces, '' at the end, and then how many names it was read.
local function names_with(keys, args)
  local P, op = keys[1], cmsgpack.unpack(args[1])
  local closed = reject_when_closed(P)
  if closed then return closed end
  local objects, after, reply, room = P .. ':list:' .. op.kind, op.after, {'', 0}, op.room
  local function read(namespace)
    local first, last = '[' .. namespace .. '/' .. op.prefix, '(' .. namespace .. '/' .. op.prefix .. '\255'
    local members = redis.call('ZRANGEBYLEX', objects, first, last, 'LIMIT', 0, math.max(room, 1))
    room = room - #members
    reply[2] = reply[2] + #members
    if room <= 0 and #members > 0 then
      members[#members + 1] = redis.call('ZRANGE', objects, last, first, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
    end
    for _, member in ipairs(members) do reply[#reply + 1] = string.sub(member, #namespace + 2) end
  end
  if op.ns ~= '' then
    read(op.ns)
    return reply
  end
  for _ = 1, op.limit do
    local first = after ~= '' and '[' .. after .. '0' or '-' -- '0' follows '/'
    local member = redis.call('ZRANGEBYLEX', objects, first, '+', 'LIMIT', 0, 1)[1]
    if not member then return reply end
    after = string.match(member, '^[^/]*')
    read(after)
  end
  reply[1] = after
  return reply
end

register('list', list, 'no-writes')
register('named', named, 'no-writes')
register('names_with', names_with, 'no-writes')
