import { z } from 'zod';
import { email, personName, multiLineText } from '@content-platform/contract';
import { IdentityFailure } from './failure.ts';

/** A person's identity at the identity provider. */
export type Person = ReturnType<typeof toPerson>;

const maxSuborgs = 1_000;

// OpenID Connect Core §5.1. Claims of another type are ignored. §2: a subject has at most 255 characters.
const form = z.object({
  iss: multiLineText(1, 2000),
  sub: multiLineText(1, 255),
  email: email.optional().catch(undefined),
  email_verified: z.literal(true).optional().catch(undefined),
  name: personName.optional().catch(undefined),
  amr: z.array(z.string()).catch([]),
});

const suborg = multiLineText(1, 200);

/** Reads the claim, which is a single text or a list. */
function suborgsIn(claim: unknown): string[] {
  const values: unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.flatMap((value) => suborg.safeParse(value).data ?? []).slice(0, maxSuborgs);
}

/** Converts claims to a person. Throws IdentityFailure if the subject is invalid. */
export function toPerson(claims: Record<string, unknown>, suborgsClaim: string) {
  const result = form.safeParse(claims);
  if (!result.success)
    throw new IdentityFailure('identity_token_invalid', 'iss or sub has not the right form');
  const { iss, sub, email: address, email_verified: verified, name, amr } = result.data;
  return {
    issuer: iss,
    subject: sub,
    email: address,
    emailVerified: verified === true,
    name,
    /** Whether the provider checked a second factor (RFC 8176). */
    mfa: amr.includes('mfa'),
    /** The suborgs that the user may choose from. */
    suborgs: suborgsIn(claims[suborgsClaim]),
  };
}
