-- What every script shares: the keys of one shard, the settings, the clock. Costs little: it makes next to no functions.
--
-- KEYS[1]   exp        ZSET  id -> e: the armed deadlines
-- KEYS[2]   cur        HASH  lead -> cursor "s" or "s m"; field "v": version of the settings
-- KEYS[3]   open       HASH  id -> "<kind>:<e>" of its unsettled cleanup, "+" at the end if its recurrence re-armed it
-- KEYS[4]   skip       ZSET  "<lead>:<id>" -> e: this lead stays silent for this e although the sweep has not met it
-- KEYS[5]   crossed    ZSET  "<lead>:<id>" -> until when no further crossing speaks
-- KEYS[6]   payload    HASH  id -> bytes; the payload of a cleanup under its notice
-- KEYS[7]   fail       HASH  "<route>:<notice>" -> JSON of its failures
-- KEYS[8]   meta       HASH  settings, routes, version, pauses, wake-at, counters
-- KEYS[9]   every      HASH  id -> period in ms, or "cron:<spec>"
-- KEYS[10]  bad        ZSET  quarantined id -> score
-- KEYS[11]  dead       HASH  "<route>:<notice>" -> JSON of a dead letter
-- KEYS[12]  dead_at    ZSET  the same member -> when
-- KEYS[13]  review     HASH  "<route>:<notice>" -> JSON of a notice parked for a person
-- KEYS[14]  review_at  ZSET  the same member -> when
-- KEYS[15]  due        ZSET  notice -> time + (n*64 + c)/1024; one such key for each route, in order
--
-- ARGV[1]   now_ms        the instant to take for now; empty: the server's clock
-- ARGV[2]   version       of the settings the caller knows
-- ARGV[3]   late          crossing | skip | fire
-- ARGV[4]   grace_ms
-- ARGV[5]   on_rearm      supersede | deliver
-- ARGV[6]   min_repeat_ms -1: the lead itself
-- ARGV[7]   tolerance_ms  how far the clock may step back without repeats
-- ARGV[8]   wants_digits  for each route one digit a lead and one for cleanups: 1 wants it, 0 does not
-- ARGV[9]   keyed_rules   JSON of what holds for key-backed ids, or empty
-- ARGV[10]  history_limit about how many ended notices are remembered; 0: none
-- ARGV[11]  lead_count
-- ARGV[12]  leads         in ms, ascending; then what the script itself takes, from ARGV[A + 1] on
local exp, cur, open, skip, crossed, payload, fail = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local meta, every, bad = KEYS[8], KEYS[9], KEYS[10]
local dead, dead_at, review, review_at = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now_ms, version, late, grace_ms, on_rearm = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local min_repeat_ms, tolerance_ms, wants_digits, keyed_rules = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local history_limit, lead_count = tonumber(ARGV[10]), tonumber(ARGV[11])
local A = 11 + lead_count                                  -- the last argument of the common ones
local lead_texts = { unpack(ARGV, 12, A) }
local route_count = #KEYS - 14
local call, floor, min, max, huge = redis.call, math.floor, math.min, math.max, math.huge
local find, sub, byte = string.find, string.sub, string.byte
local delivers = on_rearm == 'deliver'

local now = tonumber(now_ms)
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

local function due(route) return KEYS[14 + route] end
