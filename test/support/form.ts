export interface FormPart {
  bytes: Uint8Array;
  /** The field name; `file` by default. */
  field?: string;
  /** The file name; null for a field that is not a file. */
  name?: string | null;
}

const boundary = '----the-boundary-of-the-tests';

/** Encodes multipart/form-data (RFC 7578); names are not validated. */
export function formOf(parts: FormPart[]): { type: string; body: Uint8Array<ArrayBuffer> } {
  const pieces = parts.flatMap(({ bytes, field = 'file', name = 'image.jpg' }) => {
    const file = name === null ? '' : `; filename="${name}"\r\nContent-Type: application/octet-stream`;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${field}"${file}\r\n\r\n`;
    return [Buffer.from(head), bytes, Buffer.from('\r\n')];
  });
  const body = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}
