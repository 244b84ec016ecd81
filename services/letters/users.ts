import { type ServiceFetch, unavailable } from '@content-platform/chassis';
import { id } from '@content-platform/contract';

const timeoutMs = 5_000;

export type FindUser = (whom: { email: string } | { id: string }) => Promise<number | undefined>;

/** Looks up a user's id at auth's internal listener at `url`. Throws 503 if auth does not answer within 5 s. */
export function createFindUser(url: string, fetchAsService: ServiceFetch): FindUser {
  return async (whom) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetchAsService(`${url}/users?${new URLSearchParams(whom)}`, { signal });
      if (response.status === 200) return id.parse(((await response.json()) as { id?: unknown }).id);
      // 422: a malformed id or email.
      if (response.status === 404 || response.status === 422) return undefined;
      throw new Error(`the auth service returned ${response.status}`);
    } catch (error) {
      throw unavailable('The auth service is unavailable. Retry later.', error);
    }
  };
}
