-- The sweep cursors, and the version of the settings that stands beside them.

-- Each lead: ms, text, next (the next smaller lead), and its cursor: everything <= (score, member) is swept.
local leads = {}

-- Reads version and cursors in one command. Returns the refusal to answer with, or nothing.
local function load_cursors()
  local read = call('HMGET', cur, 'v', unpack(lead_texts))
  if read[1] ~= version then return { read[1] and 'reload' or 'unconfigured' } end
  for i = 1, lead_count do
    local lead = { text = lead_texts[i], ms = tonumber(lead_texts[i]), next = i > 1 and leads[i - 1].ms or 0, score = -huge }
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
