-- What a change of the lead times does to the cursors (C5, C6). The common arguments carry the new settings.
local old_cursors, old_leads, removed_leads = {}, {}, {}
local stored_settings = call('HGET', meta, 'settings')
local is_new = not stored_settings
local kept = {}
for i = 1, lead_count do kept[lead_texts[i]] = true end
for _, ms in ipairs(stored_settings and cjson.decode(stored_settings).remind or {}) do
  local old = text(ms)
  old_leads[old], old_cursors[old] = true, call('HGET', cur, old)
  if not kept[old] then removed_leads[#removed_leads + 1] = old end
end

-- The cursor that lead i begins with, as text; nothing: it stays as it is, or begins before everything.
local function planned_cursor(i, first_start)
  local lead = lead_texts[i]
  local ms = tonumber(lead)
  if old_leads[lead] or call('HEXISTS', cur, lead) == 1 then return nil end
  if is_new then return first_start == 'silent' and text(now + ms) or nil end
  local nearest
  for _, removed in ipairs(removed_leads) do
    if tonumber(removed) < ms and (not nearest or tonumber(removed) > tonumber(nearest)) then nearest = removed end
  end
  if not nearest then return text(now + ms) end
  local cursor = old_cursors[nearest]
  if not cursor then return nil end
  return tonumber(cursor:match('^%S+')) >= now + ms and text(now + ms) or cursor
end
