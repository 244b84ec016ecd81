import type { Database } from '@content-platform/chassis';
import { statements } from '../statements.ts';

/** A subject at an identity provider (OpenID Connect Core §5.7). */
interface Subject {
  issuer: string;
  subject: string;
}

/** Stores which user belongs to each subject. Use it in transactions. All functions throw the errors of `query`. */
export function createIdentityStore(query: Database['query']) {
  const { first, affects, run } = statements(query);
  return {
    /** Makes concurrent logins of the subject wait until the transaction ends; they would create a user each. */
    lock({ issuer, subject }: Subject) {
      const text = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';
      return run('lock_identity', text, [JSON.stringify([issuer, subject])]);
    },

    async findUserId({ issuer, subject }: Subject): Promise<number | undefined> {
      const text = 'SELECT user_id::float8 AS id FROM auth.identity WHERE issuer = $1 AND subject = $2';
      return (await first<{ id: number }>('find_identity', text, [issuer, subject]))?.id;
    },

    /** Returns false if the user is already linked to another subject of this provider. */
    link({ issuer, subject }: Subject, userId: number) {
      const text = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ($1, $2, $3)
                    ON CONFLICT (user_id, issuer) DO NOTHING`;
      return affects('add_identity', text, [issuer, subject, userId]);
    },
  };
}
