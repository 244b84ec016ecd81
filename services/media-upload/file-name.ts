const maxCharacters = 150;

/** Cleans a file's name for display: no path, nothing invisible but joiners (Hindi, emoji), short, with its extension. */
export function cleanName(given: string | undefined): string {
  const name = (given ?? '')
    .toWellFormed()
    .normalize('NFC')
    .replace(/^.*[/\\]/su, '')
    .replace(/(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replace(/\s+/gu, ' ')
    // The lookbehind makes the time linear: without it, each dot of a long row begins a search for the end.
    .replace(/^[.\s]+|(?<![.\s])[.\s]+$/gu, '');
  if (!/\P{Cf}/u.test(name)) return 'file';
  const characters = [...name];
  if (characters.length <= maxCharacters) return name;
  const ending = /\.[^.\s]{1,10}$/u.exec(name)?.[0] ?? '';
  return characters.slice(0, maxCharacters - [...ending].length).join('') + ending;
}

/** Returns a Content-Disposition with a name in any script (RFC 6266 §4.3), and an ASCII name for older clients. */
export function disposition(kind: 'inline' | 'attachment', name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_');
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Returns the name of an image's variant, with the extension of its format. */
export const webpName = (name: string): string => `${name.replace(/\.[^.\s]{1,10}$/u, '')}.webp`;
