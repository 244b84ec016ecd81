// Reads content until it is ended, and prints how many ms each read took: in a process of its own, so that what its test
// does meanwhile does not count. argv: the gateway's address, a token.
import { setTimeout as sleep } from 'node:timers/promises';
import { readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

const [, , gateway = '', token] = process.argv;
for (;;) {
  const begun = performance.now();
  const { status } = await call(gateway, readContent, { params: { model: 'webform', id: 1 }, token });
  if (status !== 200) throw new Error(`a read was answered ${status}`);
  process.stdout.write(`${performance.now() - begun}\n`);
  await sleep(50);
}
