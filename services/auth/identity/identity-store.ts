import { statements, type Database } from '@content-platform/chassis';

/** A subject at an identity provider (OpenID Connect Core §5.7). */
interface Subject {
  issuer: string;
  subject: string;
}

interface IdentityEmail {
  email?: string | undefined;
  emailVerified: boolean;
}

/** An identity of a user. null: no login since the release that added these columns. */
export interface LinkedIdentity extends Subject {
  id: number;
  email: string | null;
  emailVerified: boolean | null;
}

const columns = 'id::float8 AS id, issuer, subject, email, email_verified AS "emailVerified"';

/** Stores which user belongs to each subject. Use it in transactions. All functions throw the errors of `query`. */
export function createIdentityStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);
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

    /** Stores the email of a login, and whether the provider verified it. */
    updateEmail({ issuer, subject, email, emailVerified }: Subject & IdentityEmail) {
      const text =
        'UPDATE auth.identity SET email = $3, email_verified = $4 WHERE issuer = $1 AND subject = $2';
      return run('note_identity_email', text, [issuer, subject, email ?? null, emailVerified]);
    },

    list(userId: number) {
      const text = `SELECT ${columns} FROM auth.identity WHERE user_id = $1 ORDER BY identity.id`;
      return rows<LinkedIdentity>('list_identities', text, [userId]);
    },

    /** Returns the identities whose email no login has shown to be verified. */
    listUnverified() {
      const text = `SELECT ${columns}, user_id::float8 AS "userId",
                      (SELECT "user".email FROM auth.user WHERE "user".id = user_id) AS "userEmail"
                    FROM auth.identity WHERE email_verified IS NOT TRUE ORDER BY user_id`;
      return rows<LinkedIdentity & { userId: number; userEmail: string }>('list_unverified', text);
    },

    /** Removes a link of the user and returns its issuer; undefined if there is no such link. */
    async unlink(userId: number, id: number): Promise<string | undefined> {
      const text = 'DELETE FROM auth.identity WHERE user_id = $1 AND id = $2 RETURNING issuer';
      return (await first<{ issuer: string }>('delete_identity', text, [userId, id]))?.issuer;
    },

    /** Remembers a logout token by its hash; returns false if it was used before. */
    useLogoutToken: (hash: Buffer) =>
      affects('use_logout_token', 'INSERT INTO auth.logout_token (hash) VALUES ($1) ON CONFLICT DO NOTHING', [
        hash,
      ]),

    /** Removes all links of the user. */
    unlinkAll: (userId: number) =>
      run('delete_identities', 'DELETE FROM auth.identity WHERE user_id = $1', [userId]),
  };
}
