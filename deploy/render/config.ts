import { ConfigError, readConfig, url } from '@content-platform/chassis';
import { Problem } from '../local/problem.ts';

/** The settings of `npm run render`. */
const renderConfig = {
  RUNBOOK_BASE_URL: url('http:', 'https:')
    .transform((value) => value.replace(/[/#]+$/, ''))
    .default('https://example.com/runbooks'),
};

/**
 * Returns the URL of docs/operations/runbooks.md, with which every link to a runbook starts.
 *
 * @throws Problem when RUNBOOK_BASE_URL is invalid
 */
export function runbookBaseUrl(): string {
  try {
    return readConfig(renderConfig, process.env).RUNBOOK_BASE_URL;
  } catch (error) {
    throw error instanceof ConfigError ? new Problem(error.message) : error;
  }
}

/** Returns the `runbook_url` of an alert. */
export const runbookUrl = (alert: string): string => `${runbookBaseUrl()}#${alert.toLowerCase()}`;
