import { html, type Content, type Html } from './html.ts';

interface Page {
  title: string;
  /** Content beside the heading. */
  aside?: Content;
  body: Content;
  /** The page's script refreshes it periodically. */
  live?: boolean;
  /** The browser loads /pulse once more, immediately. */
  reloadOnce?: boolean;
}

export function layout({ title, aside, body, live = false, reloadOnce = false }: Page): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="/pulse/assets/pulse.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/pulse/assets/pulse.css" />
        ${reloadOnce && html`<meta http-equiv="refresh" content="0; url=/pulse" />`}
        ${
          live &&
          html`<script src="/pulse/assets/pulse.js" defer></script>
            <noscript><meta http-equiv="refresh" content="5" /></noscript>`
        }
      </head>
      <body>
        <header>
          <h1>Pulse</h1>
          ${aside}
        </header>
        <main id="main">${body}</main>
      </body>
    </html> `;
}
