import type { Person } from './people.ts';

const escape = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<style>body { font: 1.1rem system-ui; max-width: 40rem; margin: 4rem auto } button { font: inherit; display: block; margin: .5rem 0 } pre { white-space: pre-wrap; overflow-wrap: anywhere }</style>
<h1>${title}</h1>${body}</html>`;

const button = (value: string, label: string): string =>
  `<button name="subject" value="${escape(value)}">${escape(label)}</button>`;

/** Renders the login form. An empty subject denies the login. */
export const choicePage = (people: readonly Person[]): string =>
  page(
    'Who are you?',
    `<form method="post">${people.map(({ subject, name, email, emailVerified }) => button(subject, `${name}, ${email}${emailVerified ? '' : ' (not verified)'}`)).join('')}${button('', 'Cancel')}</form>`,
  );

/** Renders an error that cannot be returned to the client. */
export const errorPage = (message: string): string => page('The login failed', `<p>${escape(message)}</p>`);

/** Renders the end of a demo login: the parameters that an app would get. */
export const returnPage = (query: URLSearchParams): string =>
  page(
    query.has('code') ? 'You are back' : 'You were refused',
    `<p>${query.has('code') ? 'The code below is valid for one minute, together with the verifier. Paste it into the command on the terminal.' : 'The client gets this error:'}</p><pre>${[...query].map(([name, value]) => escape(`${name}=${value}`)).join('\n')}</pre>`,
  );
