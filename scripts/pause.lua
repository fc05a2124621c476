-- Pauses or resumes the namespace, or one of its routes (R0).
--
-- ARGV[A + 1]  route      its name; "" for the whole namespace
-- ARGV[A + 2]  reminders  1 if they are meant
-- ARGV[A + 3]  cleanups   1 if they are meant
-- ARGV[A + 4]  paused     1 pauses, 0 resumes
--
-- Returns {"ok"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
local scope = ARGV[A + 1] == '' and 'paused:' or 'paused:' .. ARGV[A + 1] .. ':'
for class, is_meant in pairs({ reminders = ARGV[A + 2], cleanups = ARGV[A + 3] }) do
  if is_meant == '1' then
    if ARGV[A + 4] == '1' then call('HSET', meta, scope .. class, text(now)) else call('HDEL', meta, scope .. class) end
  end
end
if ARGV[A + 4] ~= '1' then comes_due(now) end
wake()
return { 'ok' }
