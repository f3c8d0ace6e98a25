-- ManagedSeeds and ShootStates follow a shoot: they are shown to the gardenlets of the seeds that it concerns.

-- exports: followed_shoot, is_followed, note_follower, past_with, announce_followers, put_follower
-- exports: current_audience

-- The shoot (by its key) to whose seeds an object is shown: its ManagedSeed's and its ShootState's gardenlets see them.
function followed_shoot(kind, ns, name, refs)
  if kind == 'shootstate' then return 'shoot:' .. ns .. ':' .. name end
  if kind == 'managedseed' and refs ~= '' then return refs end
end

-- Whether something follows a shoot; kept as its field `fol`, so that nothing has to be looked up where nothing does.
function is_followed(P, shoot)
  local tail = ':shoot:' .. shoot.ns .. ':' .. shoot.name
  return redis.call('EXISTS', P .. ':refs' .. tail, P .. ':o:shootstate:' .. shoot.ns .. ':' .. shoot.name) > 0
end

function note_follower(P, shoot)
  if shoot and redis.call('EXISTS', P .. ':o:' .. shoot) == 1 then redis.call('HSET', P .. ':o:' .. shoot, 'fol', '1') end
end

-- The seeds that an object was ever taken from, with those that it is taken from now.
function past_with(past, left)
  return seeds_left(seeds_with(seeds_with({}, past), left), {})
end

-- Shows what follows a shoot to the seeds that the shoot concerns by now, and withdraws it from those that it `left`;
-- these are remembered, so that it can be withdrawn again. A new version each time keeps the announcements in order; there is
-- none to be had (`with_version` false) before the fence opens.
function announce_followers(P, shoot, left, with_version)
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

-- The followers' part of a put: an object that comes to follow a shoot, or another one, is shown elsewhere.
function put_follower(P, op, object, created)
  local shoot = followed_shoot(op.kind, op.ns, op.name, op.set.refs or object.refs)
  local old = not created and followed_shoot(op.kind, op.ns, op.name, object.refs) or nil
  if shoot == old then return '' end
  note_follower(P, shoot)
  local left = seeds_left(seeds_at(P, old), seeds_at(P, shoot))
  op.set.past = past_with(object.past, left)
  return left
end

-- The seeds that an object which follows a shoot is to be shown to now; none for any other.
function current_audience(P, key)
  if string.sub(key, 1, 6) == 'shoot:' then return '' end
  local kind, ns, name = string.match(key, '^(%w+):([^:]*):(.*)$')
  if kind ~= 'managedseed' and kind ~= 'shootstate' then return '' end
  local object = read_fields(P .. ':o:' .. key, {'ver', 'refs'})
  if object.ver == '' then return '' end
  return seeds_left(seeds_at(P, followed_shoot(kind, ns, name, object.refs)), {})
end
