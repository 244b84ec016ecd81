import { expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '@content-platform/chassis';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { mailConfig, mailSettings } from './settings.ts';

const three = {
  SMTP_URL: 'smtp://mail.example.com',
  MAIL_FROM: 'no-reply@example.com',
  PASSWORD_RESET_URL: 'https://app.example.com/reset',
};
const read = (env: Record<string, string>) => mailSettings(readConfig(mailConfig, env));

test.each([
  ['smtp://mail.example.com', { host: 'mail.example.com', port: 587, requireTLS: true, ignoreTLS: false }],
  ['smtp://mail.example.com:25?tls=never', { port: 25, requireTLS: false, ignoreTLS: true }],
  ['smtp://127.0.0.1:2525', { port: 2525, requireTLS: true, ignoreTLS: false }],
  ['smtp://[::1]:2525/', { host: '::1' }],
  ['smtps://a%40b:p%2Fw@mail.example.com', { port: 465, secure: true, auth: { user: 'a@b', pass: 'p/w' } }],
])('%s', (SMTP_URL, smtp) => {
  expect(read({ ...three, SMTP_URL })).toMatchObject({ smtp, from: three.MAIL_FROM });
});

test('is off without settings, also with an empty SMTP_URL_FILE, and reads SMTP_URL_FILE', () => {
  const file = join(temporaryFolder(), 'url');
  const { SMTP_URL, ...others } = three;
  writeFileSync(file, '\n');
  expect(read({ SMTP_URL_FILE: file })).toBeUndefined();
  writeFileSync(file, `${SMTP_URL}\n`);
  expect(read({ ...others, SMTP_URL_FILE: file })?.smtp.host).toBe('mail.example.com');
});

test.each(['SMTP_URL', 'MAIL_FROM', 'PASSWORD_RESET_URL'])('refuses %s alone', (name) => {
  const rest = '; set all of SMTP_URL, MAIL_FROM, PASSWORD_RESET_URL or none';
  expect(() => read({ [name]: three[name as 'SMTP_URL'] })).toThrow(`are not set${rest}`);
});

test.each([
  ['SMTP_URL', 'mail.example.com'],
  ['SMTP_URL', 'smtp://'],
  ['SMTP_URL', 'smtps://mail.example.com:587'],
  ['SMTP_URL', 'smtp://mail.example.com:465'],
  ['SMTP_URL', 'http://mail.example.com'],
  ['SMTP_URL', 'smtp://mail.example.com?tls=no'],
  ['SMTP_URL', 'smtp://mail.example.com?tls=never&pool=true'],
  ['SMTP_URL', 'smtps://mail.example.com?tls=never'],
  ['SMTP_URL', 'smtp://mail.example.com/path'],
  ['SMTP_URL', 'smtp://secret%:x@mail.example.com'],
  ['MAIL_FROM', 'Platform'],
  ['MAIL_FROM', 'a@example.com, b@example.com'],
  ['MAIL_FROM', 'A, B <a@example.com>'],
  ['MAIL_FROM', 'A <a@example.com>\r\nBcc: b@example.com'],
  ['MAIL_FROM', 'A\nBcc: b@example.com <a@example.com>'],
  ['PASSWORD_RESET_URL', 'http://app.example.com/reset'],
  ['PASSWORD_RESET_URL', 'https://app.example.com/#/reset'],
])('refuses %s=%j', (name, value) => {
  const refusal = () => read({ ...three, [name]: value });
  expect(refusal).toThrow(new RegExp(`^${name} must be [^\\n]+$`));
  expect(refusal).not.toThrow(/secret%/);
});
