-- Ranks in exp of places that may lie inside a tie (C3).
local function count_upto(score) return score == -huge and 0 or call('ZCOUNT', exp, '-inf', text(score)) end

-- The rank of the first entry after (score, member) in ZSET order.
local function rank_after(score, member)
  if not member then return count_upto(score) end
  local standing = call('ZSCORE', exp, member)
  if standing and tonumber(standing) == score then return call('ZRANK', exp, member) + 1 end
  local low, high = call('ZCOUNT', exp, '-inf', '(' .. text(score)), count_upto(score)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_after(call('ZRANGE', exp, middle, middle)[1], member) then high = middle else low = middle + 1 end
  end
  return low
end
