import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { stackFilePath } from '../../../deploy/local/config.ts';
import { logIn, newUser } from '../../../test/support/accounts.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { untilRefused } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();
const folder = join(dirname(stackFilePath()), 'mail');
const new_password = 'eleven quiet herons read maps';

/** Waits for a mail to this address in the folder of the stack's mail server. */
const mailTo = (email: string) =>
  until('a mail arrives', () => {
    const name = readdirSync(folder).find((file) => file.endsWith(`-${email}.eml`));
    return name && (readFileSync(join(folder, name), 'utf8') || undefined);
  });

const forgotPasswordExample = {
  body: { email: `${randomUUID()}@example.com` },
  invalid: {
    fields: {
      email: [
        undefined,
        '',
        ' ',
        'x'.repeat(255),
        ['a@example.com'],
        'a@example.com\n',
        'a\u2028@example.com',
        'a@example.com\r\nBcc: b@example.com',
      ],
      name: ['A'],
    },
  },
};
describeEndpoint(contract.forgotPassword, forgotPasswordExample, ({ ask }) => {
  test('accepts any email, and sends a mail to a user', async () => {
    const { email } = await newUser();
    const replies = [await ask({ body: { email } }), await ask({ body: { email: 'nobody@example.com' } })];
    expect(replies.map(({ status }) => status)).toEqual([202, 202]);
    const mail = await mailTo(email);
    expect(mail).toMatch(/^http:\/\/localhost:3000\/#token=[\w-]{43}\r$/m);
  });
});

const resetPasswordExample = {
  body: { token: 'x'.repeat(43), new_password },
  invalid: {
    fields: { token: [undefined, '', 12], new_password: ['', 'x'.repeat(1_025)], email: ['a@example.com'] },
  },
};
describeEndpoint(contract.resetPassword, resetPasswordExample, ({ ask }) => {
  test('sets the password once, and ends all sessions', async () => {
    const user = await newUser();
    await call(gateway, contract.forgotPassword, { body: { email: user.email } });
    const token = tokenIn(await mailTo(user.email))!;
    expect(await ask({ body: { token, new_password } })).toMatchObject({ status: 204 });
    await untilRefused(user.token);
    expect((await logIn(user.email, new_password)).token).toBeTruthy();
    const { error } = await ask({ body: { token, new_password } });
    expect(error).toMatchObject({ error: 'invalid_reset_token', code: 400 });
  });
});
