/** Accounts of a stack with demo data. Their emails and secrets are public, so use such a stack only for trials. */
export const DEMO_PASSWORD = 'demo-password';
export const DEMO_USERS = [
  { email: 'admin@example.com', name: 'Ada Admin', roles: ['admin'] },
  { email: 'sre@example.com', name: 'Sam Rivers', roles: ['sre'] },
  { email: 'user@example.com', name: 'Uma User', roles: ['user'] },
] as const;
export const DEMO_CLIENT = {
  name: 'content-server',
  secret: 'demo-secret',
  scopes: ['cache:clear'],
} as const;
