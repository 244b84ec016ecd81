import { z } from 'zod';
import { email, personName, multiLineText } from '@content-platform/contract';
import { IdentityFailure } from './failure.ts';

/** Who somebody is at the identity service. */
export type Person = ReturnType<typeof personOf>;

const maxSuborgs = 1_000;

// OpenID Connect Core §5.1. What has another form is as good as not there; §2: the subject has 255 characters at most.
const form = z.object({
  iss: multiLineText(1, 2000),
  sub: multiLineText(1, 255),
  email: email.optional().catch(undefined),
  email_verified: z.literal(true).optional().catch(undefined),
  name: personName.optional().catch(undefined),
});

const suborg = multiLineText(1, 200);

/** One as a text, or several as a list. */
function suborgsIn(claim: unknown): string[] {
  const values: unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.flatMap((value) => suborg.safeParse(value).data ?? []).slice(0, maxSuborgs);
}

/** Throws IdentityFailure when the subject cannot be one. */
export function personOf(claims: Record<string, unknown>, suborgsClaim: string) {
  const result = form.safeParse(claims);
  if (!result.success)
    throw new IdentityFailure('identity_token_invalid', 'iss or sub has not the right form');
  const { iss, sub, email: address, email_verified: verified, name } = result.data;
  return {
    issuer: iss,
    subject: sub,
    email: address,
    emailVerified: verified === true,
    name,
    /** The parts of the organisation that they may choose from. */
    suborgs: suborgsIn(claims[suborgsClaim]),
  };
}
