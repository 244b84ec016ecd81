// Schemathesis generates valid and invalid requests from the OpenAPI document for every caller, and checks each reply
// against the document, with every check and every operation. SCHEMATHESIS_EXAMPLES: cases per operation in addition to
// the document's examples (20, quick 1). SCHEMATHESIS_SEED: repeats an earlier run.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomInt } from 'node:crypto';
import { logIn } from '../support/accounts.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { proofSize } from '../support/proof-size.ts';
import { writeResult } from '../support/results.ts';
import { installSchemathesis, requirements } from '../support/schemathesis/install.ts';
import { newCallers, peopleOf, roles, type Caller } from '../support/schemathesis/roles.ts';
import { runSchemathesis, type Run } from '../support/schemathesis/run.ts';
import { makeFixtures } from '../support/schemathesis/fixtures.ts';

const settings = {
  seed: Number(process.env['SCHEMATHESIS_SEED'] ?? randomInt(2 ** 31)),
  examples: Number(process.env['SCHEMATHESIS_EXAMPLES'] ?? proofSize(20, 1)),
  // Coverage takes longest: two thousand requests per caller. The stateful phase chains several operations.
  phases: proofSize('examples,coverage,fuzzing,stateful', 'fuzzing'),
};
const roleMs = 60_000 * (10 + settings.examples);

/** Operations without a success in this proof, and where they are tested. */
const neverDone: Record<string, string> = {
  identityCallback:
    'needs a login that is under way at the identity provider: services/auth/endpoints/identity.contract',
  updateSuborg:
    'needs a session that came from the identity provider: services/auth/endpoints/identity.contract',
  retryFailedJob:
    'the events that failed fail again, 409: services/content-cache/endpoints/failed-jobs.contract',
  resetPassword: 'needs the link of a mail: services/auth/endpoints/password-reset.contract',
  backchannelLogout:
    'needs a logout token of the identity provider: services/auth/endpoints/identity.contract',
  confirmTotp: 'needs a code of an authenticator app: services/auth/endpoints/mfa.contract',
  loginMfa: 'needs a user with a second factor: services/auth/endpoints/mfa.contract',
  deleteTotp: 'needs a user with a second factor: services/auth/endpoints/mfa.contract',
  deleteUserMfa: 'needs a user with a second factor: services/auth/endpoints/mfa.contract',
  reauthenticate: 'needs the password of the session: services/auth/endpoints/reauthenticate.contract',
  deleteMe: 'needs the password of the session, and would end it: services/auth/endpoints/me',
  deleteUserIdentity: 'needs a user of the identity provider: services/auth/endpoints/users.contract',
};

let own: OwnStack;
let programs: string;
let callers: Caller[];
const runs = new Map<string, Run>();

beforeAll(async () => {
  programs = await installSchemathesis();
  console.log(`SCHEMATHESIS_SEED=${settings.seed} SCHEMATHESIS_EXAMPLES=${settings.examples}`);
  process.env['RATE_LIMIT_SCALE'] = '0';
  own = await startOwnStack(undefined, { identityDemo: true });
  callers = await newCallers();
  await makeFixtures(callers);
}, 600_000);

afterAll(() => own?.stop());

describe('every reply to a generated request matches the document', () => {
  test.each(roles)(
    '%s',
    async (role) => {
      const caller = callers.find(({ name }) => name === role)!;
      const accounts = callers.flatMap(peopleOf).map(({ id }) => id);
      const run = await runSchemathesis(programs, caller, settings, accounts);
      runs.set(role, run);
      const { report } = run;
      if (run.code !== 0) console.log(run.output);
      expect({ failures: report.failures, errors: report.errors }).toEqual({ failures: [], errors: [] });
      expect(run.code).toBe(0);
      expect(report.operations['tested']).toBe(report.operations['total']);
      // No request has deleted the role's users or changed their passwords.
      await Promise.all(caller.peers.map(({ email, password }) => logIn(email, password)));
    },
    roleMs,
  );
});

test('every operation succeeded for some caller, except those with a documented reason', () => {
  const done = new Set<string>();
  const all = new Set<string>();
  for (const { statuses } of runs.values()) {
    for (const [operation, counts] of Object.entries(statuses)) {
      all.add(operation);
      if (Object.keys(counts).some((status) => Number(status) < 400)) done.add(operation);
    }
  }
  const never = [...all].filter((operation) => !done.has(operation)).toSorted();
  writeResult('faults', 'schemathesis', {
    settings: { ...settings, schemathesis: /^schemathesis==(.*)$/m.exec(requirements())?.[1] },
    meaning:
      'for each role: operations of the document; cases that were sent; how each check ended (a check that has nothing to say of a case counts as a success); how often each operation was answered with which status, requests with other methods left out',
    neverDone,
    roles: Object.fromEntries(
      [...runs].map(([role, { report, checks, statuses }]) => [
        role,
        {
          seconds: Math.round(report.running_time),
          operations: report.operations,
          phases: report.phases,
          cases: report.test_cases,
          checks,
          failures: report.failures,
          errors: report.errors,
          filtered: report.filtered,
          statuses,
        },
      ]),
    ),
  });
  const known = Object.keys(neverDone).toSorted();
  // Few requests may not reach a success of each operation.
  expect(never).toEqual(proofSize(known, expect.arrayContaining(known) as unknown as string[]));
});
