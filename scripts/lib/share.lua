-- Q1: fair shares of a batch of `room`, at most what each class has waiting; `turn` rotates who gets the odd one.
local function fair_shares(wanted, room, turn)
  local share = { 0, 0, 0 }
  while room > 0 do
    local hungry = 0
    for class = 1, 3 do if share[class] < wanted[class] then hungry = hungry + 1 end end
    if hungry == 0 then break end
    local each = max(1, floor(room / hungry))
    for i = 1, 3 do
      local class = (turn + i) % 3 + 1
      local more = min(each, wanted[class] - share[class], room)
      share[class], room = share[class] + more, room - more
    end
  end
  return share
end
