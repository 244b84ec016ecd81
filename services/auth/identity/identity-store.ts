import type { Database } from '@content-platform/chassis';
import { statements } from '../statements.ts';

/** A person at an identity service (OpenID Connect Core §5.7). */
interface Subject {
  issuer: string;
  subject: string;
}

/** Which user each person at an identity service is. In transactions. Everything throws what `query` throws. */
export function createIdentityStore(query: Database['query']) {
  const { first, affects, run } = statements(query);
  return {
    /** Keeps other logins of the person waiting until the transaction ends: two at once would create two users. */
    lock({ issuer, subject }: Subject) {
      const text = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';
      return run('lock_identity', text, [JSON.stringify([issuer, subject])]);
    },

    async findUserId({ issuer, subject }: Subject): Promise<number | undefined> {
      const text = 'SELECT user_id::float8 AS id FROM auth.identity WHERE issuer = $1 AND subject = $2';
      return (await first<{ id: number }>('find_identity', text, [issuer, subject]))?.id;
    },

    /** False if the user is another person at this identity service already. */
    link({ issuer, subject }: Subject, userId: number) {
      const text = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ($1, $2, $3)
                    ON CONFLICT (user_id, issuer) DO NOTHING`;
      return affects('add_identity', text, [issuer, subject, userId]);
    },
  };
}
