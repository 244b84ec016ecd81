import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { accepted, tokenOf } from './accounts.ts';
import { stack } from './stack.ts';

/** Returns the current report of /pulse. Throws if it responds with an error. */
export async function readPulse(): Promise<contract.PulseReport> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'sre');
  return (await accepted(call(gateway, contract.pulse, { token }))).body!;
}

/** Headers of a browser's page request; `onThePage` adds the page's origin. */
export const browser = { Accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' };
export const onThePage = () => ({ ...browser, Origin: stack().gateway });

/** Returns the cookie of a reply as a browser sends it back. */
export function cookieOf(headers: Headers): string {
  return headers.getSetCookie()[0]!.split(';')[0]!;
}
