import { html, type Html } from './html.ts';
import { layout } from './layout.ts';

/** `problem`: why the form is shown again. `fromElsewhere`: a link of another site sent no cookie; a reload does. */
export function signInPage(problem?: string, email = '', fromElsewhere = false): Html {
  return layout({
    title: 'Sign in – Pulse',
    reloadOnce: fromElsewhere,
    body: html`<form class="card narrow" method="post" action="/pulse/sign-in">
      <h2>Sign in</h2>
      ${problem !== undefined && html`<p class="problem" id="problem" role="alert">${problem}</p>`}
      <label for="email">Email</label>
      <input
        id="email"
        name="email"
        value="${email}"
        aria-describedby="problem"
        inputmode="email"
        autocapitalize="none"
        autocorrect="off"
        autocomplete="username"
        required
        maxlength="254"
        autofocus
      />
      <label for="password">Password</label>
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        maxlength="1024"
      />
      <label for="code">Code of your authenticator app, if you use one</label>
      <input id="code" name="code" autocomplete="one-time-code" maxlength="100" />
      <button id="sign-in">Sign in</button>
    </form>`,
  });
}

export function forbiddenPage(reason: string): Html {
  return layout({
    title: 'Not allowed – Pulse',
    body: html`<section class="card narrow">
      <h2>Not allowed</h2>
      <p role="alert">${reason}</p>
      <form method="post" action="/pulse/sign-out">
        <button id="sign-out">Sign in as another user</button>
      </form>
    </section>`,
  });
}
