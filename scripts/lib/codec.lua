-- Reading and writing scores and notices, long lists, byte order.
local function text(number) return string.format('%.17g', number) end

-- The one text of a score: a raw client may have written a fraction, or something that is not after 1970.
local function canonical(score)
  if not score or not find(score, '%D') then return score end
  local number = tonumber(score)
  return number <= 0 and '0' or text(number)
end

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
-- Answers how many are new. A notice that is in a queue already stays there as it is: two lives with the same expiry are one notice.
local function add_new(key, list)
  local added = 0
  for i = 1, #list, 4000 do added = added + call('ZADD', key, 'NX', unpack(list, i, min(i + 3999, #list))) end
  return added
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
