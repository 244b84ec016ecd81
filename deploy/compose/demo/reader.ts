import { login, models, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { DEMO_PASSWORD, DEMO_RECORDS } from '../../local/demo-data.ts';

const EMAIL = 'user@example.com';
/** Reads some records far more often than others, like real clients. */
const FAVOURITES = 10;

const oneOf = (count: number): number => 1 + Math.floor(Math.random() * count);

async function logIn(gateway: string): Promise<string> {
  const answer = await call(gateway, login, { body: { email: EMAIL, password: DEMO_PASSWORD } });
  if (answer.error) throw new Error(`no login: ${answer.error.message}`);
  return answer.body.token;
}

/** Simulates a client: each call reads one demo record. @throws the error of a failed read */
export function createReader(gateway: string): () => Promise<void> {
  let token: Promise<string> | undefined;
  return async () => {
    token ??= logIn(gateway);
    const id = Math.random() < 0.8 ? oneOf(FAVOURITES) : oneOf(DEMO_RECORDS);
    const params = { model: models[oneOf(models.length) - 1]!, id };
    try {
      const answer = await call(gateway, readContent, { params, token: await token });
      if (answer.error) throw new Error(`no read: ${answer.status} ${answer.error.message}`);
    } catch (error) {
      // The token may have expired; the next read logs in again.
      token = undefined;
      throw error;
    }
  };
}
