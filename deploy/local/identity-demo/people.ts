/** Somebody who can log in at the demo's identity service, without a password. */
export interface Person {
  subject: string;
  name: string;
  email: string;
  emailVerified: boolean;
  suborgs: readonly string[];
}

/** One who has an account already, one who is new, and one who only says that an address is theirs. */
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
