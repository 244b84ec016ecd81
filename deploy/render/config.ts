import { readConfig, url } from '@content-platform/chassis';

/** The settings of `npm run render`. */
const renderConfig = {
  RUNBOOK_BASE_URL: url('http:', 'https:')
    .transform((value) => value.replace(/[/#]+$/, ''))
    .default('https://example.com/runbooks'),
};

/** Returns the URL of docs/operations/runbooks.md, with which every link to a runbook starts. Throws ConfigError. */
export const runbookBaseUrl = (): string => readConfig(renderConfig).RUNBOOK_BASE_URL;

/** Returns the `runbook_url` of an alert. */
export const runbookUrl = (alert: string): string => `${runbookBaseUrl()}#${alert.toLowerCase()}`;
