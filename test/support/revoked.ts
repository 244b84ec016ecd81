import * as contract from '@content-platform/contract';
import { checkError } from '@content-platform/contract/client';
import { stack } from './stack.ts';
import { until } from './wait.ts';

/** Returns the places that accept the access token: the gateway and each service called directly. */
async function placesThatAccept(token: string): Promise<string[]> {
  const { gateway, services } = stack();
  const content = '/api/content/webform/1';
  const places = [
    { endpoint: contract.me, url: `${gateway}/api/me` },
    { endpoint: contract.readContent, url: gateway + content },
    { endpoint: contract.me, url: `${services['auth']!.public}/api/me` },
    { endpoint: contract.readContent, url: services['content-cache']!.public + content },
  ];
  const accepting: string[] = [];
  for (const { endpoint, url } of places) {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${token}` } });
    const body: unknown = await response.json();
    if (response.status !== 401) accepting.push(url);
    else if (checkError(endpoint, 401, body).error !== 'invalid_token')
      throw new Error(`${url}: no invalid_token`);
  }
  return accepting;
}

/** Whether the gateway and each service accept the token. A machine's token counts without the scope, too. */
export async function isAcceptedEverywhere(token: string): Promise<boolean> {
  return (await placesThatAccept(token)).length === 4;
}

/** Waits until every service refuses the token. */
export async function untilRefused(token: string): Promise<void> {
  await until('the token is refused everywhere', async () => (await placesThatAccept(token)).length === 0);
}
