// Writes the receivers of alerts into Alertmanager's configuration, which cannot read settings from the environment.

/** The settings; empty or undefined counts as not set. */
export interface Receivers {
  webhook?: string | undefined;
  slack?: string | undefined;
  /** Email addresses, separated by commas. They need `smtpUrl` and `mailFrom`. */
  emailTo?: string | undefined;
  smtpUrl?: string | undefined;
  mailFrom?: string | undefined;
}

/** Parses a URL; a lone % cannot be decoded. @throws Error with the name of the setting, not with its secret value */
function parse(name: string, value: string, ...protocols: string[]): URL {
  if (/\s|%(?![\da-f]{2})/i.test(value) || !protocols.includes(URL.parse(value)?.protocol ?? ''))
    throw new Error(`${name} must contain one URL that starts with ${protocols.join('// or ')}//`);
  return new URL(value);
}

const web = (name: string, value: string): string => parse(name, value, 'http:', 'https:').href;

/** Returns the address without the name: Alertmanager would encode a non-ASCII name together with the address. */
const addressIn = (mailbox: string) => /^(?:[^<>]*<)?([^\s@<>,;]+@[^\s@<>,;]+)>?$/.exec(mailbox.trim())?.[1];

/** Returns an entry of `email_configs`. Refuses a user without TLS: Alertmanager logs in to some servers only. */
function email({ emailTo = '', smtpUrl, mailFrom }: Receivers) {
  if (!smtpUrl || !mailFrom) throw new Error('ALERT_EMAIL_TO needs SMTP_URL_FILE and MAIL_FROM');
  const [from, to] = [addressIn(mailFrom), emailTo.replace(/,\s*$/, '').split(',').map(addressIn)];
  if (!from || to.includes(undefined) || /[^ -~]/.test([from, ...to].join()))
    throw new Error('MAIL_FROM needs an ASCII email address, and ALERT_EMAIL_TO some, separated by commas');
  const server = parse('SMTP_URL_FILE', smtpUrl, 'smtp:', 'smtps:');
  const isTls = server.protocol === 'smtps:';
  const port = server.port || (isTls ? '465' : '587');
  if (server.search && (isTls || server.username || server.search !== '?tls=never'))
    throw new Error('SMTP_URL_FILE may end in ?tls=never after smtp:// without a user, and in nothing else');
  // Alertmanager recognizes by this port whether a connection begins with TLS.
  if (isTls !== (port === '465'))
    throw new Error('SMTP_URL_FILE must contain smtps:// with port 465, or smtp:// with another port');
  return {
    to: to.join(', '),
    from,
    // The default, localhost, is refused by servers that want a full name, for example Google's relay.
    hello: from.replace(/^.*@/, ''),
    smarthost: `${server.hostname}:${port}`,
    auth_username: decodeURIComponent(server.username),
    auth_password: decodeURIComponent(server.password),
    require_tls: !isTls && server.search !== '?tls=never',
    send_resolved: true,
  };
}

const slackText =
  '{{ range .Alerts }}{{ .Annotations.summary }}: {{ .Annotations.description }} {{ .Annotations.runbook_url }}\n{{ end }}';

/** Returns the text of alertmanager.yml with these receivers instead of its own. @throws Error that names a setting */
export function withReceivers(config: string, settings: Receivers): string {
  const { webhook, slack, emailTo } = settings;
  const receiver = {
    name: 'team',
    webhook_configs: webhook ? [{ url: web('ALERT_WEBHOOK_FILE', webhook) }] : [],
    slack_configs: slack
      ? [{ api_url: web('ALERT_SLACK_URL_FILE', slack), text: slackText, send_resolved: true }]
      : [],
    email_configs: emailTo ? [email(settings)] : [],
  };
  // JSON is YAML.
  return config.replace(/^receivers:\n[^]*/m, () => `receivers:\n  - ${JSON.stringify(receiver)}\n`);
}
