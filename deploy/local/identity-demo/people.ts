/** A person who can log in at the demo identity service without a password. */
export interface Person {
  subject: string;
  name: string;
  email: string;
  emailVerified: boolean;
  suborgs: readonly string[];
}

/** An existing user, a new user, and a person with an unverified email. */
export const DEMO_PEOPLE: readonly Person[] = [
  {
    subject: 'uma',
    name: 'Uma User',
    email: 'user@example.com',
    emailVerified: true,
    suborgs: ['north', 'south'],
  },
  {
    subject: 'nils',
    name: 'Nils Newcomer',
    email: 'nils@example.com',
    emailVerified: true,
    suborgs: ['south'],
  },
  {
    subject: 'mallory',
    name: 'Mallory Impostor',
    email: 'admin@example.com',
    emailVerified: false,
    suborgs: [],
  },
];

/** Client registration of the platform at the demo identity service. */
export const DEMO_CLIENT = { id: 'content-platform', secret: 'demo-identity-secret' };
