import { expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { newAddress, tokenOf } from '../support/accounts.ts';
import { scrapeAll } from '../support/metrics.ts';
import { stack } from '../support/stack.ts';

test('10,000 paths, models, methods and user agents add no series', async () => {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'sre');
  const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PURGE', 'PROPFIND', 'MKCOL'];
  // The routes that are asked for wrongly have their series before.
  const askAll = async (count: number) => {
    for (let done = 0; done < count; done += 20) {
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const method = methods[(done + index) % methods.length]!;
          const name = randomUUID();
          const paths = [
            `/${name}`,
            `/api/${name}/${name}`,
            `/api/content/${name}/1`,
            `/api/content/webform/1?view=${name}`,
            `/api/letters/${name}`,
          ];
          const path = paths[(done / 20 + index) % paths.length]!;
          const headers = {
            'User-Agent': name,
            'X-Forwarded-For': newAddress(),
            'X-Request-Id': name,
            Authorization: `Bearer ${index % 2 ? token : name}`,
          };
          const response = await fetch(gateway + path, { method, headers });
          await response.arrayBuffer();
        }),
      );
    }
  };
  await askAll(700);
  const names = async () =>
    [...(await scrapeAll()).values()].flatMap((series) => [...series.keys()]).toSorted();
  const before = await names();
  await askAll(10_000);
  expect(await names()).toEqual(before);
});
