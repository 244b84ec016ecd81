/** Text that is already escaped HTML. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Content = Html | string | number | null | undefined | false | readonly Content[];

function textOf(content: Content): string {
  if (content === null || content === undefined || content === false) return '';
  if (content instanceof Html) return content.text;
  if (Array.isArray(content)) return content.map(textOf).join('');
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Renders a template. Escapes values in text and quoted attributes unless they are Html; omits null and false. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(strings.reduce((text, string, index) => text + textOf(values[index - 1]) + string));
}
