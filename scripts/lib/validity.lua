-- May a notice still be handed out? 'ok', or the reason to drop it.

-- W1; score: that of its id now.
local function reminder_state(kind, e_text, score)
  local ms, lead = tonumber(kind), nil
  for i = 1, lead_count do if leads[i].ms == ms then lead = leads[i] end end
  if not lead then return 'lead' end
  if not score or tonumber(canonical(score)) ~= tonumber(e_text) then return 'superseded' end
  local rest = tonumber(e_text) - now
  if rest <= 0 then return 'expired' end
  if rest <= lead.next then return 'coalesced' end
  return rest > lead.ms and 'superseded' or 'ok'
end

-- W5; entry: what open holds for its id, score: that of its id now.
local function cleanup_state(kind, e_text, score, entry)
  if delivers or (names(entry, kind .. ':' .. e_text) and (not score or sub(entry, -1) == '+')) then return 'ok' end
  return 'superseded'
end
