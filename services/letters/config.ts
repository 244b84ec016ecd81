import { commonConfig, databaseUrl, readConfig, tokenConfig } from '@content-platform/chassis';

export const lettersConfig = {
  ...commonConfig(8085),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
};

/** Throws ConfigError. */
export function readLettersConfig() {
  return readConfig(lettersConfig, process.env);
}

/** What the admin command needs of it. Throws ConfigError. */
export function readAdminConfig() {
  return readConfig({ DATABASE_URL: databaseUrl }, process.env);
}
