-- Quarantine (V5): ids whose score cannot be an expiry.

-- Moves up to `most` ids with scores from low to high; prepare is called before the first write. Returns how many were moved
-- and how many are left.
local function quarantine(low, high, most, prepare)
  local count = call('ZCOUNT', exp, low, high)
  if count == 0 then return 0, 0 end
  prepare()
  local taken = most > 0 and call('ZRANGEBYSCORE', exp, low, high, 'WITHSCORES', 'LIMIT', 0, most) or {}
  local moved, gone = {}, {}
  for j = 1, #taken, 2 do
    gone[#gone + 1] = taken[j]
    moved[j], moved[j + 1] = taken[j + 1], taken[j]
  end
  if #gone > 0 then
    write_all('ZADD', bad, moved)
    write_all('ZREM', exp, gone)
  end
  return #gone, count - #gone
end

-- Ids that are armed again leave it.
local function free_rearmed()
  local looked = call('ZRANGE', bad, 0, 99)
  local scores, back = read_all('ZMSCORE', exp, looked), {}
  for j = 1, #looked do if scores[j] then back[#back + 1] = looked[j] end end
  if #back > 0 then call('ZREM', bad, unpack(back)) end
end
