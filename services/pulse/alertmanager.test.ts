import { expect, test } from '@jest/globals';
import { startAlertmanager } from '../../test/support/alertmanager.ts';
import { until } from '../../test/support/wait.ts';
import { alertReceivers } from './alertmanager.ts';

const [webhook, slack] = ['http://127.0.0.1:1/', 'http://127.0.0.1:1/services/T0/B0/secret'];
const mail = { emailTo: 'ops@example.com', smtpUrl: 'smtp://127.0.0.1:1', mailFrom: 'platform@example.com' };

test.each([
  [{ webhook, slack, ...mail }, ['email', 'slack', 'webhook']],
  [{}, []],
])(
  'reads the kinds of receivers from a real Alertmanager with %j',
  async (settings, kinds) => {
    const alertmanager = await startAlertmanager(settings);
    const found = await until('it answers', () => alertReceivers(`http://${alertmanager.address}`));
    await alertmanager.stop();
    expect(found.toSorted()).toEqual(kinds);
  },
  // The time limit includes the download of the programs.
  180_000,
);
