import { expect, test } from '@jest/globals';
import { alertmanagerConfig, startAlertmanager } from '../support/alertmanager.ts';
import { startReceivers } from '../support/receivers.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';
import { startWebhook } from '../support/webhook.ts';

const webhook = useStarted(startWebhook);
const receivers = useStarted(startReceivers);
const alertmanager = useStarted(
  () => startAlertmanager({ webhook: webhook.url, ...receivers.settings }, receivers.certificate),
  // The time limit includes the download of the programs.
  180_000,
);

test('an alert reaches the webhook, Slack and each email address, also when it ends', async () => {
  const labels = { alertname: 'ServiceDown', service: 'auth' };
  const annotations = { summary: 'auth is down', runbook_url: 'https://example.com/runbooks#servicedown' };
  await alertmanager.send([{ labels, annotations }]);
  await until('the webhook was called', () => webhook.notified()['ServiceDown'] === 'auth is down');
  const isIn =
    (texts: unknown[], ...words: string[]) =>
    () =>
      texts.some((text) => words.every((word) => JSON.stringify(text).includes(word)));
  await until('Slack has it', isIn(receivers.slackTexts, 'FIRING', 'auth is down', '#servicedown'));
  for (const part of ['ops@example.com', 'sre@example.com', 'From: platform@example.com\\r'])
    await until(`${part} is in it`, isIn(receivers.mails, part, 'FIRING', 'auth is down'));
  await alertmanager.send([{ labels, annotations, endsAt: new Date().toISOString() }]);
  await until('the webhook was called', () => webhook.firing().length === 0);
  await until('Slack has the end', isIn(receivers.slackTexts, 'RESOLVED'));
  await until('the mail of the end is there', isIn(receivers.mails, 'RESOLVED', '"hello":"example.com"'));
});

const mail = { emailTo: 'ops@example.com', mailFrom: 'platform@example.com' };

test.each([
  [
    { webhook: 'hooks.example.com' },
    'ALERT_WEBHOOK_FILE must contain one URL that starts with http:// or https://',
  ],
  [
    { slack: 'https://a.example.com\nhttps://b.example.com' },
    'ALERT_SLACK_URL_FILE must contain one URL that starts with http:// or https://',
  ],
  [{ emailTo: 'ops@example.com' }, 'ALERT_EMAIL_TO needs SMTP_URL_FILE and MAIL_FROM'],
  [{ ...mail, smtpUrl: 'smtp://mail.example.com', emailTo: 'a@b.test; c@b.test' }, 'ALERT_EMAIL_TO some'],
  [{ ...mail, smtpUrl: 'smtp://mail.example.com', mailFrom: 'a@mün.test' }, 'MAIL_FROM needs an ASCII'],
  [{ ...mail, smtpUrl: 'smtps://mail.example.com:587' }, 'SMTP_URL_FILE must contain smtps:// with port'],
  [{ ...mail, smtpUrl: 'smtp://mail.example.com?tls=no' }, 'SMTP_URL_FILE may end in ?tls=never after'],
  [{ ...mail, smtpUrl: 'smtp://ops:x@mail.example.com?tls=never' }, 'SMTP_URL_FILE may end in ?tls=never'],
  [{ ...mail, smtpUrl: 'smtp://ops:50%@mail.example.com' }, 'SMTP_URL_FILE must contain one URL that starts'],
])('refuses %j', async (settings, message) => {
  await expect(alertmanagerConfig(settings)).rejects.toThrow(message);
});
