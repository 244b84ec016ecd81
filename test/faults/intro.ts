/** What docs/faults.md begins with. */
export const intro = `# What clients get when something fails

Written by its test, which brings up the whole platform, does each of these things to each of its dependencies, one at a time, and asks for everything: \`npm run proof -- faults-table\`. Where this page and what it sees differ it fails, and writes what it saw.

- **ok**: as in health. Content says how in \`X-Cache\`: cached is \`hit\`, not cached is \`miss\`, and \`bypass\` means that PostgreSQL was read and the cache left alone.
- Everything else is the status, the error's name in the envelope and the time that a client waits at most, where the machine has nothing else to do: _at once_ is under a second. Every error has the envelope, 503 has \`Retry-After\`; there is no other 5xx than 502, 503 and 504.
- Two answers: the _first_ one after the fault began, and _then_, once it is known. Who waits does so to find out whether it is back: one request a second; the others are told at once.
- **back to normal**: from the end of the fault until everything is answered as before. Nobody restarts anything.
- Whatever fails: no read returns anything older than an acknowledged clear, and a clear that was refused is sent again afterwards and holds. \`/pulse\` answers with what it can get.

_gone_: nobody listens. _slow_: each answer comes 5 s late. _hanging_: connections open, and nothing comes. _connections reset_: when something is sent. _rubbish_: bytes of no protocol, and the end. _another protocol_: the words of a web server, and silence. _a foreign 500_: a web server that is not ours is at the address.

The rows: _login_ is \`POST /api/login\`, _token_ \`POST /api/token\` of a machine client, _identity login_ the way back from the identity service, _clears_ \`POST /api/admin/cache/clear-model\`, _failed jobs_ their list, _media_ the download of a picture, _devices_ and _letters_ a change, _documents_ \`/api/openapi.json\`.`;
