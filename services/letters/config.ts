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
