"""Tracks, renews and removes an id with the client that was made from the server's own document."""

import sys

from made import Client
from made.api.deadlines import remove, renew, show, track
from made.models import DeadlineBody

url, namespace = sys.argv[1:]
client = Client(base_url=url)
odd = "a/b é?#"
words = []
for call, ttl in [(track, "1h"), (renew, "2h")]:
    answer = call.sync(namespace, odd, client=client, body=DeadlineBody(ttl=ttl))
    words.append(answer.result.value)
assert show.sync(namespace, odd, client=client).id == odd
words.append(remove.sync(namespace, odd, client=client).result.value)
words.append(str(show.sync_detailed(namespace, odd, client=client).status_code.value))
print(*words)
