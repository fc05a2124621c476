-- What every script shares: the keys of one shard, the settings, the clock, the codecs. Reads only.
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
-- ARGV[9]   lead_count
-- ARGV[10]  leads         in ms, ascending; then what the script itself takes, from ARGV[A + 1] on
local exp, cur, open, skip, crossed, payload, fail = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local meta, every, bad = KEYS[8], KEYS[9], KEYS[10]
local dead, dead_at, review, review_at = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now_ms, version, late, grace_ms, on_rearm = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local min_repeat_ms, tolerance_ms, wants_digits = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local lead_count = tonumber(ARGV[9])
local A = 9 + lead_count                                   -- the last argument of the common ones
local route_count = #KEYS - 14
local call, floor, min, max, huge = redis.call, math.floor, math.min, math.max, math.huge
local find, sub, byte = string.find, string.sub, string.byte
local delivers = on_rearm == 'deliver'

local now = tonumber(now_ms)
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

local function text(number) return string.format('%.17g', number) end

-- The one text of a score: a raw client may have written a fraction, or something that is not after 1970.
local function canonical(score)
  if not score or not find(score, '%D') then return score end
  local number = tonumber(score)
  return number <= 0 and '0' or text(number)
end

local function due(route) return KEYS[14 + route] end
local function route_name(route) return due(route):match('[^:]*$') end
local CLEANUP = lead_count + 1
local function wants(route, what) return byte(wants_digits, (route - 1) * CLEANUP + what) == 49 end

-- Scores of due: time, n hand-outs so far (0..15), c = 1 + claims % 63 while leased and 0 while ready or waiting.
local function due_score(time, n, c) return text(time + (n * 64 + c) / 1024) end
local function fence_of(score) return (score - floor(score)) * 1024 end

local function split(notice) return notice:match('^(%w+):([^:]+):(.*)$') end
local function is_cleanup(notice) return byte(notice, 1) == 48 end

-- unpack fails at 8,000, so long lists go in slices of an even number.
local function write_all(command, key, list)
  for i = 1, #list, 4000 do call(command, key, unpack(list, i, min(i + 3999, #list))) end
end
local function read_all(command, key, members)
  if #members == 0 then return {} end
  if #members <= 4000 then return call(command, key, unpack(members)) end
  local all = {}
  for i = 1, #members, 4000 do
    local part = call(command, key, unpack(members, i, min(i + 3999, #members)))
    for j = 1, #part do all[i + j - 1] = part[j] end
  end
  return all
end

-- a > b in byte order, as in a ZSET; Lua's own order depends on the locale.
local function is_after(a, b)
  for i = 1, min(#a, #b) do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- Each lead: ms, text, next (the next smaller lead), and its cursor: everything <= (score, member) is swept.
local leads = {}

-- Reads version and cursors in one command. Returns the refusal to answer with, or nothing.
local function load_cursors()
  local read = call('HMGET', cur, 'v', unpack(ARGV, 10, A))
  if read[1] ~= version then return { read[1] and 'reload' or 'unconfigured' } end
  for i = 1, lead_count do
    local lead = { text = ARGV[9 + i], ms = tonumber(ARGV[9 + i]), next = i > 1 and leads[i - 1].ms or 0, score = -huge }
    local stored = read[i + 1]
    if stored then
      local space = find(stored, ' ', 1, true)
      lead.score, lead.member = tonumber(space and sub(stored, 1, space - 1) or stored), space and sub(stored, space + 1)
    end
    lead.stored = lead.score
    if lead.score > now + lead.ms + tolerance_ms then      -- C4: the clock stepped back
      lead.score, lead.member, lead.rewound = now + lead.next, nil, true
    end
    leads[i] = lead
  end
end
local function cursor_text(lead) return lead.member and text(lead.score) .. ' ' .. lead.member or text(lead.score) end
local function save_rewound()
  for i = 1, lead_count do
    if leads[i].rewound then call('HSET', cur, leads[i].text, cursor_text(leads[i])) end
  end
end
