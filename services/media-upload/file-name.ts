const longest = 150;

/**
 * What is kept of a file's name, which is data only: no path, nothing that is not shown or turns the direction of
 * writing, and not too long; its ending stays.
 */
export function cleanName(given: string | undefined): string {
  const name = (given ?? '')
    .toWellFormed()
    .normalize('NFC')
    .replace(/^.*[/\\]/su, '')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replace(/\s+/gu, ' ')
    .replace(/^[.\s]+|[.\s]+$/gu, '');
  if (name === '') return 'file';
  const characters = [...name];
  if (characters.length <= longest) return name;
  const ending = /\.[^.\s]{1,10}$/u.exec(name)?.[0] ?? '';
  return characters.slice(0, longest - [...ending].length).join('') + ending;
}

/** Content-Disposition with a name in any script (RFC 6266 §4.3), and one for who reads ASCII only. */
export function disposition(kind: 'inline' | 'attachment', name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_');
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** The name of a picture's variant: its ending says what it is now. */
export function webpName(name: string): string {
  return `${name.replace(/\.[^.\s]{1,10}$/u, '')}.webp`;
}
