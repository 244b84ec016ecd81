import { html, type Content, type Html } from './html.ts';

/** Renders a part of the page with a heading. If the part has changed, the page's script replaces it as a whole. */
export function card(id: string, heading: string, note: Content, body: Content): Html {
  return html`<section class="card" id="${id}" data-part aria-labelledby="${id}-heading">
    <h2 id="${id}-heading">${heading}</h2>
    ${note && html`<p class="note">${note}</p>`} ${body}
  </section>`;
}

interface Column {
  heading: string;
  /** Aligns the column to the right. */
  isNumber?: boolean;
}

/** Renders a table that scrolls horizontally if it is too wide. `none`: the text in place of a table without rows. */
export function table(id: string, columns: readonly Column[], rows: readonly Content[][], none: string) {
  if (rows.length === 0) return html`<p>${none}</p>`;
  const kind = ({ isNumber }: Column) => isNumber && html` class="figure"`;
  return html`<div class="scroll" id="${id}-table" tabindex="0" role="region" aria-labelledby="${id}-heading">
    <table>
      <thead>
        <tr>
          ${columns.map((column) => html`<th scope="col" ${kind(column)}>${column.heading}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell, index) => html`<td${kind(columns[index]!)}>${cell}</td>`)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Renders a time of day in UTC; `iso` as ISO 8601. */
export const timeOfDay = (iso: string): Html =>
  html`<time datetime="${iso}" title="${iso}">${iso.slice(11, 19)}</time>`;

/** Renders a date and a time of day in UTC; `iso` as ISO 8601. */
export function dateTime(iso: string): Html {
  return html`<time datetime="${iso}" title="${iso}">
    <span class="figure">${iso.slice(0, 10)}</span> <span class="figure">${iso.slice(11, 19)}</span>
  </time>`;
}

/** Renders a word and a sign, so that the state does not depend on a colour. */
export const stateMark = (ok: boolean, yes = 'ok', no = 'missed'): Html =>
  html`<span class="${ok ? 'ok' : 'missed'}">${ok ? `✓ ${yes}` : `✗ ${no}`}</span>`;
