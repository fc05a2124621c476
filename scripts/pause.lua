-- Pauses or resumes the namespace, or one of its routes (R0).
--
-- ARGV[A + 1]  route      its name; "" for the whole namespace
-- ARGV[A + 2]  reminders  1 if they are meant
-- ARGV[A + 3]  cleanups   1 if they are meant
-- ARGV[A + 4]  paused     1 pauses, 0 resumes
-- ARGV[A + 5]  rate       notices a second of this shard that a resume lets flow at most, until what gathered is worked off (R2);
--                         "" does not limit
--
-- Returns {"ok"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
local of_route, rate = ARGV[A + 1] == '' and '' or ARGV[A + 1] .. ':', ARGV[A + 5]
-- What a paused route put off comes back within a second.
local catch_up = catching_up()
local stands = of_route == '' and now or now + catch_up.SAVED_MS
catch_up.load(call('HGET', meta, 'catch-up'))
for class, is_meant in pairs({ reminders = ARGV[A + 2], cleanups = ARGV[A + 3] }) do
  if is_meant == '1' then
    local field = 'paused:' .. of_route .. class
    if ARGV[A + 4] == '1' then call('HSET', meta, field, text(now)) else call('HDEL', meta, field) end
    catch_up.set(of_route .. class, rate ~= '' and { rate, text(now), text(stands) } or nil)
  end
end
catch_up.save()
if ARGV[A + 4] ~= '1' then comes_due(now) end
wake()
return { 'ok' }
