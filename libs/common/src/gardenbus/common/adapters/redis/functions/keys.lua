-- Every write of the store, as Redis Functions: each checks what it was based on, changes the object and its indexes,
-- and appends an entry to the outbox, all or nothing. KEYS[1] is the landscape's prefix P, ARGV[1] a msgpack map.
-- Replies are flat arrays; the first element of a write's reply says how it ended. The Python side is
-- redis/store.py and the relay's adapters/redis_outbox.py; tests run these very texts without a Redis, too.
--
-- function_library.py joins these files into one text, so a local of one file stands in all that come after it. This is
-- the first: the keys and how they are read, and how a function is registered with Redis.
--
-- Keys (all below P:)
--   o:<kind>:<ns>:<name>   hash   one object, in the parts of api/document.py, and what it was indexed by;
--                                 of a seed `cap`, `alc` and `mark` (takes so many shoots, and so much of other resources; is
--                                 about to be removed), of a shoot `rq` (what it requests of these), `grp` (its groups: groups.lua), `bd` (its band in the queue),
--                                 `fol` (something follows it), `why` (when and on what grounds it was bound), `op` and `cnt`
--                                 (its operation, what it is counted as) and `tp` (the trace that it waits with), of both
--                                 `past` (seeds that it was taken from); `prior` has the uids of the last removed of its name,
--                                 `size` the bytes that it is counted with
--   dead:<key>             hash   what is remembered of a removed object (uid, version, request order, seeds, `prior`)
--   graves                 zset   <key> by the version of its removal
--   list:<kind>            zset   "<ns>/<name>" in lexical order
--   by_version             zset   <key> by version
--   uids                   hash   uid -> <key>
--   owned:<uid>, refs:<key>, refs:<key>#<part>, usage:<seed>, pending:<scheduler>   sets; a part is one of a profile
--   hard:<ns>:<kind>       hash   "<ResourceQuota> <resource>" -> how many objects of the kind it allows there
--   demand:<key>            hash   unit -> how many of them those want that name <key> in their field `demand`
--   taken:<seed>           hash   resource -> what the shoots in usage:<seed> request of it (requests.lua)
--   group:<ns>:<group>     hash   seed -> members of a group there, its version, and who keeps others off (groups.lua)
--   awaited:<ns>:<group>   set    "<ns>/<name>" of the waiting shoots that a change of the group may unblock
--   usage_changed          zset   seed by usage version, "<seed> requests" by that of its `taken`
--   migrating              set    "<ns>/<name>" of the shoots whose spec and status name different seeds
--   states                 hash   state -> number of shoots;  busy  zset "<began> <ns> <name>" (shoot_states.lua)
--   claims                 hash   what only one object may have -> its <key>
--   stored                 hash   <ns> -> number of its objects, "<ns> bytes" -> their bytes (stored_amounts.lua)
--   kinds, schedulers      sets   every kind stored and every scheduler name requested so far
--   waiting                set    scheduler names with waiting shoots
--   waiting:<scheduler>    hash   class -> descriptor;  waiting:<scheduler>:<class>  zset "<ns>/<name>" by unblock index seen
--   event:<id>             hash   count and first time of an Event, until ten minutes after the last
--   fences                 hash   seed -> fencing number of its gardenlet;  seed/void -> one that LEASES has lost
--   outbox                 stream what must be announced (a bind: the shoot and its Event in one)
--   relay                  hash   stream -> how far it had come at the last trim
--   streams                hash   stream -> its history, as msgpack (stream_histories.lua)
--   losses                 list   what streams or the store have lost, as JSON;  losses_reported  hash  of these, when each was
--   alive                  string when a relay last led the open store, in seconds
--   recovery, recovery_seeds   hashes, recovery_due  string   of a store that was restored or rebuilt (recovery.lua)
--   opening                string "<format>.<epoch>.<token>", written when a relay opened the store;  vouched  string  see opening.lua
--   indexed                string the format whose indexes have every object (older_objects.lua)
--   collected              string the highest version among removals that are not remembered any more
--   restoring              string the backup that is being restored here, until all of it is stored (backups.lua)
--   leader                 string who leads, for as long as the lead lasts;  led  string  who did last (opening.lua)
--   version, usage_version, gain_objects, gain_usage     strings

-- What a reader needs to put the manifest together, in the order that records.py expects.
local PARTS = {'av', 'kd', 'meta', 'labels', 'fin', 'spec', 'status', 'rest', 'seed', 'sseed',
               'uid', 'ver', 'gen', 'created', 'del', 'pend', 'gate'}

-- A whole number as text; tostring() turns to exponents at 1e15.
local function whole(number)
  return string.format('%.0f', number)
end

local function split_lines(text)
  local lines = {}
  for line in string.gmatch(text or '', '[^\n]+') do lines[#lines + 1] = line end
  return lines
end

local function read_fields(hash_key, names)
  local values = redis.call('HMGET', hash_key, unpack(names))
  local object = {}
  for i, name in ipairs(names) do object[name] = values[i] or '' end
  return object
end

local function counter(P, name)
  return tonumber(redis.call('GET', P .. ':' .. name) or '0')
end

local function total_unblock_index(P)
  return counter(P, 'gain_objects') + counter(P, 'gain_usage')
end

-- How often functions of this library were called: one that nobody calls any more is removed (the relay's library_pruner.py).
local calls = 0

-- The trace that what is being written belongs to ('': none): goes along with its outbox entry. Set by a caller that has one.
local carried = ''

-- What is unknown (unknown.lua), as an index that is made once a call: reading it all for each shoot of a call takes long.
local unknown_index

-- Functions of groups.lua. `made`: changes of groups by this call, `are_awaited`: a waiting shoot has a rule about one of these.
local groups = {}

-- Makes a function callable from outside, as gb_<LIBRARY>_<name>. The flag is Redis' own: `no-writes` is said of what only
-- reads, `allow-oom` of what must go on when Redis is full, because it makes room or leads the relay that does.
local function register_unnoticed(name, callback, flag)
  redis.register_function{function_name = 'gb_' .. LIBRARY .. '_' .. name, callback = callback, flags = {flag}}
end

local function register(name, callback, flag)
  register_unnoticed(name, function(keys, args)
    calls = calls + 1
    carried, unknown_index, groups.made, groups.are_awaited = '', nil, nil, false
    return callback(keys, args)
  end, flag)
end

register_unnoticed('uses', function() return calls end, 'no-writes')
