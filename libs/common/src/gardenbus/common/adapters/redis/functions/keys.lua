-- Every write of the store, as Redis Functions: each checks what it was based on, changes the object and its indexes,
-- and appends an entry to the outbox, all or nothing. KEYS[1] is the landscape's prefix P, ARGV[1] a msgpack map.
-- Replies are flat arrays; the first element of a write's reply says how it ended. The Python side is
-- redis/store.py and the relay's adapters/redis_outbox.py; tests run these very texts without a Redis, too.
--
-- function_library.py joins these files into one text. What a file exports stands in all that come after it, its other
-- locals in it alone. This is the first: the keys and how they are read, and how a function is registered with Redis.
--
-- Keys (all below P:). tests/unit/store holds both tables complete; docs/reference/store.md is made of them.
--   o:<kind>:<ns>:<name>          hash    one object: its parts (api/document.py), what it is indexed by, and what the functions keep of it
--   dead:<key>                    hash    what is remembered of a removed object: `uid`, `ver`, `at`, `req`, `prior`, and `left`, the seeds that it left
--   graves                        zset    <key> of what is remembered, by the version of its removal
--   list:<kind>                   zset    "<ns>/<name>" in lexical order
--   by_version                    zset    <key> by version
--   uids                          hash    uid -> <key>
--   owned:<uid>                   set     <key> of what the object with this uid owns
--   refs:<key>                    set     <key> of what refers to the object; `refs:<key>#<part>`: to a part of a profile
--   usage:<seed>                  set     "<ns>/<name>" of the shoots that count on the seed
--   pending:<scheduler>           set     "<ns>/<name>" of the shoots that the scheduler must bind
--   hard:<ns>:<kind>              hash    "<ResourceQuota> <resource>" -> how many objects of the kind it allows there
--   demand:<key>                  hash    unit -> how many of them those want that name <key> in their field `demand`
--   taken:<seed>                  hash    resource -> what the shoots in usage:<seed> request of it (requests.lua)
--   group:<ns>:<group>            hash    seed -> members of a group there, its version, and who keeps others off (groups.lua)
--   awaited:<ns>:<group>          set     "<ns>/<name>" of the unschedulable shoots that a change of the group may unblock
--   usage_changed                 zset    seed by usage version, "<seed> requests" by that of its `taken`
--   migrating                     set     "<ns>/<name>" of the shoots whose spec and status name different seeds
--   states                        hash    state -> number of shoots (shoot_states.lua)
--   busy                          zset    "<began> <ns> <name>" of the shoots with an operation in progress (shoot_states.lua)
--   claims                        hash    what only one object may have -> its <key>
--   stored                        hash    <ns> -> number of its objects, "<ns> bytes" -> their bytes (stored_amounts.lua)
--   kinds                         set     every kind stored so far
--   schedulers                    set     every scheduler name requested so far
--   waiting                       set     scheduler names that have unschedulable shoots
--   waiting:<scheduler>           hash    class -> descriptor
--   waiting:<scheduler>:<class>   zset    "<ns>/<name>" of the unschedulable shoots of the class, by the unblock index seen
--   unknown                       hash    "<seed> <key>" -> what its agent sent, as JSON, of an object that runs there and is not stored (unknown.lua)
--   event:<id>                    hash    count and first time of an Event, until ten minutes after the last
--   fences                        hash    seed -> fencing number of its gardenlet; seed/void -> one that LEASES has lost
--   outbox                        stream  what must be announced (a bind: the shoot and its Event in one)
--   relay                         hash    stream -> how far it had come at the last trim
--   streams                       hash    stream -> its history, as msgpack (stream_histories.lua)
--   losses                        list    what streams or the store have lost, as JSON
--   losses_reported               hash    loss -> when it was reported
--   alive                         string  when a relay last led the open store, in seconds
--   recovery                      hash    the recovery of a store that was restored or rebuilt, while it lasts (recovery.lua)
--   recovery_seeds                hash    seed -> `queried`, or who lets the landscape go on without it (recovery.lua)
--   recovery_due                  string  cause of the recovery that the next opening begins (recovery.lua)
--   opening                       string  "<format>.<epoch>.<token>", written when a relay opened the store (opening.lua)
--   vouched                       string  nonce by which another version of the functions vouches for the opening, for a second (opening.lua)
--   indexed                       string  the format whose indexes have every object (older_objects.lua)
--   collected                     string  the highest version among removals that are not remembered any more
--   restoring                     string  the backup that is being restored here, until all of it is stored (backups.lua)
--   leader                        string  who leads, for as long as the lead lasts (opening.lua)
--   led                           string  who led last (opening.lua)
--   version                       string  the version of the last write
--   usage_version                 string  the version of the last change of a seed's usage
--   gain_objects                  string  how often a change of objects may have unblocked shoots: a part of the unblock index
--   gain_usage                    string  how often a place on a seed became free: the other part of the unblock index
--
-- Fields of an object's hash. The names are stored bytes, hence short.
--   av       all            apiVersion
--   kd       all            kind
--   meta     all            metadata, without what has a field of its own
--   labels   all            metadata.labels
--   fin      all            metadata.finalizers, one a line
--   spec     all            spec without seedName, compressed
--   status   all            status without seedName, and for a pending shoot without lastOperation; compressed
--   rest     all            other top-level fields
--   seed     Shoot          spec.seedName
--   sseed    Shoot          status.seedName
--   uid      all            metadata.uid
--   ver      all            metadata.resourceVersion
--   gen      all            metadata.generation
--   created  all            metadata.creationTimestamp
--   del      all            metadata.deletionTimestamp
--   pend     Shoot          status.lastOperation while it is unschedulable
--   pmsg     Shoot          the message of `pend`
--   gate     Seed           its scheduling generation: the version of its last change that a bind must have seen
--   last     all            the manifest that was applied last, compressed; `null`: not known
--   rf       all            stamps of the reports that were merged into it
--   setters  all            who set which owner of it
--   req      all            position of the durable request that wrote it last
--   sched    Shoot          the scheduler that must bind it
--   cap      Seed           how many shoots it takes; empty: without limit
--   alc      Seed           how much of other resources it takes, one a line
--   mark     Seed           owner of its removal annotation
--   refs     all            <key> of what it refers to, one a line
--   own      all            uids of its owners, one a line
--   claims   all            what only one object may have, one a line
--   quota    ResourceQuota  what it limits, one a line
--   demand   all            what it wants of another object, one a line
--   rq       Shoot          what it requests of a seed's resources, one a line
--   grp      Shoot          its groups, one a line (groups.lua)
--   bd       Shoot          its band in the queue
--   op       Shoot          its operation, as it is counted by (shoot_states.lua)
--   cnt      Shoot          what it is counted as (shoot_states.lua)
--   class    Shoot          equivalence class that it is unschedulable in
--   tries    Shoot          how many attempts to schedule this generation have failed
--   tried    Shoot          generation that `tries` counts
--   tp       Shoot          trace context that it is unschedulable with
--   why      Shoot          when and on what grounds it was bound
--   fol      Shoot          `1`: another object follows it to its seeds (following.lua)
--   past     all            seeds that it was taken from
--   prior    all            uids of the last removed objects of its name
--   after    Shoot          id of the recovery since which it was ordered (recovery.lua)
--   size     all            bytes that it is counted with (stored_amounts.lua)

-- exports: PARTS, whole, split_lines, read_fields, counter, total_unblock_index, carried, unknown_index, groups
-- exports: register_unnoticed, register, together, is_noted, read_once

-- What a reader needs to put the manifest together, in the order that records.py expects.
PARTS = {'av', 'kd', 'meta', 'labels', 'fin', 'spec', 'status', 'rest', 'seed', 'sseed',
         'uid', 'ver', 'gen', 'created', 'del', 'pend', 'gate'}

-- A whole number as text; tostring() turns to exponents at 1e15.
function whole(number)
  return string.format('%.0f', number)
end

function split_lines(text)
  local lines = {}
  for line in string.gmatch(text or '', '[^\n]+') do lines[#lines + 1] = line end
  return lines
end

function read_fields(hash_key, names)
  local values = redis.call('HMGET', hash_key, unpack(names))
  local object = {}
  for i, name in ipairs(names) do object[name] = values[i] or '' end
  return object
end

function counter(P, name)
  return tonumber(redis.call('GET', P .. ':' .. name) or '0')
end

function total_unblock_index(P)
  return counter(P, 'gain_objects') + counter(P, 'gain_usage')
end

-- How often functions of this library were called: one that nobody calls any more is removed (the relay's library_pruner.py).
local calls = 0

-- The trace that what is being written belongs to ('': none): goes along with its outbox entry. Set by a caller that has one.
carried = ''

-- What is unknown (unknown.lua), as an index that is made once a call: reading it all for each shoot of a call takes long.
unknown_index = nil

-- What the creations of one call (put_many) have in common, written once for all of them: members to add to sets, and counts to
-- add to hashes (indexes.lua, quotas.lua); versions that guards have read, and members of small sets that are there. Nil where
-- each write is alone.
together = nil

-- Whether something is noted of this call already; notes it.
function is_noted(what)
  if not together then return false end
  local before = together.noted[what]
  together.noted[what] = true
  return before
end

-- The result of a command which no creation changes: read once for those of one call.
function read_once(command, ...)
  if not together then return redis.call(command, ...) end
  local place = table.concat({command, ...}, ' ')
  local found = together.read[place]
  if found == nil then
    found = redis.call(command, ...)
    together.read[place] = found
  end
  return found
end

-- Functions of groups.lua. `made`: changes of groups by this call, `are_awaited`: a waiting shoot has a rule about one of these.
groups = {}

-- Makes a function callable from outside, as gb_<LIBRARY>_<name>. The flag is Redis' own: `no-writes` is said of what only
-- reads, `allow-oom` of what must go on when Redis is full, because it makes room or leads the relay that does.
function register_unnoticed(name, callback, flag)
  redis.register_function{function_name = 'gb_' .. LIBRARY .. '_' .. name, callback = callback, flags = {flag}}
end

function register(name, callback, flag)
  register_unnoticed(name, function(keys, args)
    calls = calls + 1
    carried, unknown_index, groups.made, groups.are_awaited, together = '', nil, nil, false, nil
    return callback(keys, args)
  end, flag)
end

register_unnoticed('uses', function() return calls end, 'no-writes')
