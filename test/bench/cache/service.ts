import { Pool } from 'undici';
import { clearModel } from '@content-platform/contract';

/** A candidate's process, called directly. */
export interface Service {
  origin: string;
  /** Returns the version of the record. */
  read(id: number, view?: 'full' | 'summary'): Promise<number>;
  clear(id: number): Promise<void>;
  close(): Promise<void>;
}

/** @param connections maximum number of parallel requests */
export function connectTo(origin: string, headers: Record<string, string>, connections: number): Service {
  // The client closes idle connections before the service does, which would break a request being sent.
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    headersTimeout: 60_000,
    keepAliveMaxTimeout: 2_000,
  });
  const answer = async ({ statusCode, body }: Awaited<ReturnType<Pool['request']>>): Promise<string> => {
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${origin}: ${statusCode} ${text}`);
    return text;
  };
  return {
    origin,
    async read(id, view = 'full') {
      const path = `/api/content/webform/${id}?view=${view}`;
      const text = await answer(await pool.request({ method: 'GET', path, headers }));
      return (JSON.parse(text) as { version: number }).version;
    },
    async clear(id) {
      const body = JSON.stringify({ model: 'webform', id });
      const sent = { ...headers, 'content-type': 'application/json' };
      await answer(await pool.request({ method: 'POST', path: clearModel.path, headers: sent, body }));
    },
    close: () => pool.close(),
  };
}
