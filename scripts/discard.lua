-- Deletes parked notices.
--
-- ARGV[A + 1]  shelf    dead | review; then
-- ARGV[A + 2]  members  "<route>:<notice>"
--
-- Returns {"ok", for each: 1 it was there, 0 it was not}
local shelf, shelf_at = dead, dead_at
if ARGV[A + 1] == 'review' then shelf, shelf_at = review, review_at end
call('ZCARD', shelf_at)
local answers = {}
for i = A + 2, #ARGV do
  answers[#answers + 1] = call('HDEL', shelf, ARGV[i])
  call('ZREM', shelf_at, ARGV[i])
end
return { 'ok', answers }
