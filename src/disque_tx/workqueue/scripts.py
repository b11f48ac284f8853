"""The operations that Redis executes atomically, as scripts in Lua.

Each begins with the same lines: the lists are KEYS, the prefix is the first argument, and the
names of an item's own keys are made from it. A script that fails half-way is not undone, so each
first executes the commands that may fail because a key has the wrong type.
"""

from __future__ import annotations

import hashlib
from typing import Final

import attrs

#: How many IDs without data one execution of LEASE drops, before other commands get their turn.
DROPS_MAX: Final = 100
#: How far from the left end of the main queue RETURN looks for an ID that was just pushed there.
_RECENT: Final = 10_000

_PRELUDE: Final = """\
local main, processing, cleaning = KEYS[1], KEYS[2], KEYS[3]
local prefix, id = ARGV[1], ARGV[2]
local function data_key(i) return prefix .. ':item:' .. i end
local function lease_keys(i)
  return prefix .. ':lease:' .. i, prefix .. ':leased_by_session:' .. i
end
local function exists(i) return redis.call('EXISTS', data_key(i)) == 1 end
local function leased(i) return redis.call('EXISTS', lease_keys(i)) > 0 end
local function set_lease(i, session, ms)
  for _, key in ipairs({lease_keys(i)}) do redis.call('SET', key, session, 'PX', ms) end
end
local function holder(i)
  local one, other = lease_keys(i)
  return redis.call('GET', one) or redis.call('GET', other)
end
local function remove(list) return redis.call('LREM', list, 0, id) end
"""


@attrs.frozen
class Script:
    """A script. ``body``: the Lua code after the common prelude. ``source``: all of the code.
    ``sha``: the hash by which Redis finds it."""

    body: str
    source: str
    sha: str


def script(body: str) -> Script:
    """A script of the common prelude and this body."""
    source = _PRELUDE + body
    return Script(body, source, hashlib.sha1(source.encode()).hexdigest())


#: id, data, '1' to add it in any case → 1 if it was added. An item without data was completed, so a
#: lease that it still has is void.
ADD: Final = script("""\
if ARGV[4] == '0' and exists(id) then return 0 end
redis.call('LPUSH', main, id)
if not exists(id) then redis.call('DEL', lease_keys(id)) end
redis.call('SET', data_key(id), ARGV[3])
return 1
""")

#: session, ms, how many to try, and maybe a hash in which to note ``?<session>`` → {id, data}; 0
#: when none of those tried was an item; nil when nothing waits. An ID that already has a lease is a
#: duplicate: it is dropped here, and stays in processing.
LEASE: Final = script("""\
for _ = 1, tonumber(ARGV[4]) do
  local found = redis.call('RPOPLPUSH', main, processing)
  if not found then return nil end
  local data = redis.call('GET', data_key(found))
  if data and not leased(found) then
    set_lease(found, ARGV[2], ARGV[3])
    if ARGV[5] then redis.call('HSET', ARGV[5], found, '?' .. ARGV[2]) end
    return {found, data}
  end
  if not data or #redis.call('LPOS', processing, found, 'COUNT', 2) > 1 then
    redis.call('LREM', processing, 1, found)
  end
end
return 0
""")

#: id, session, ms → the data of an ID that was just moved to processing, or nil if it has no data,
#: if a clean has already returned it, or if somebody else has a lease of it.
CLAIM: Final = script("""\
local entries = #redis.call('LPOS', processing, id, 'COUNT', 2)
if entries == 0 then return nil end
local data = redis.call('GET', data_key(id))
if data and not leased(id) then
  set_lease(id, ARGV[3], ARGV[4])
  return data
end
if not data or entries > 1 then redis.call('LREM', processing, 1, id) end
return nil
""")

#: id → 1 if the data was deleted. Only an ID that a clean has returned is searched for in main.
COMPLETE: Final = script("""\
if remove(processing) == 0 and exists(id) then remove(main) end
remove(cleaning)
redis.call('DEL', lease_keys(id))
return redis.call('DEL', data_key(id))
""")

#: id, session → 1 if the item waits again, as the next one.
GIVE_BACK: Final = script("""\
local by = holder(id)
if by and by ~= ARGV[3] then return 0 end
if redis.call('LREM', processing, 1, id) == 0 then return 0 end
redis.call('DEL', lease_keys(id))
if not exists(id) then return 0 end
redis.call('RPUSH', main, id)
return 1
""")

#: id, session, ms → 1 if the lease was still this session's.
EXTEND: Final = script("""\
if holder(id) ~= ARGV[3] or not exists(id) then return 0 end
set_lease(id, ARGV[3], ARGV[4])
return 1
""")

#: id → 1 if somebody holds a lease.
LEASED: Final = script("return leased(id) and 1 or 0\n")

#: → {length of main, length of processing}
COUNTS: Final = script("return {redis.call('LLEN', main), redis.call('LLEN', processing)}\n")

#: ids → those that have data and no lease. Those without data are removed from processing.
ABANDONED: Final = script("""\
local found = {}
for n = 2, #ARGV do
  if not exists(ARGV[n]) then redis.call('LREM', processing, 0, ARGV[n])
  elseif not leased(ARGV[n]) then found[#found + 1] = ARGV[n] end
end
return found
""")

#: (id, count of LREM) … → how many were put back. Of several cleans that find the same ID, one
#: removes it from processing. Count 0: the ID was in no list; one clean pushes it, and the others
#: find it in main.
RETURN: Final = script(f"""\
local returned = 0
for n = 2, #ARGV, 2 do
  local i, count = ARGV[n], ARGV[n + 1]
  if exists(i) and not leased(i) then
    local move = redis.call('LREM', processing, count, i) > 0
    if count == '0' then
      redis.call('LREM', cleaning, 0, i)
      move = move or not redis.call('LPOS', main, i, 'MAXLEN', {_RECENT})
    end
    if move then
      redis.call('LPUSH', main, i)
      returned = returned + 1
    end
  end
end
return returned
""")
