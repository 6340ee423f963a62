import type { CatalogueEntry, Document } from './document.ts';
import { header } from './header.ts';

/** `errors.ts`: the closed set of error codes with status and default text, and whether the code is sent. */
export function emitErrors(document: Document, catalogue: Readonly<Record<string, CatalogueEntry>>): string {
  const codes = Object.entries(catalogue).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${header(document)}\n`,
    `export type ErrorCode =\n${codes.map(([code]) => `  | ${JSON.stringify(code)}`).join('\n')};\n\n`,
    '/** `onWire`: false for an internal code; the response then has no `code`. */\n',
    'export const errorCatalogue: Readonly<\n',
    '  Record<ErrorCode, { readonly status: number; readonly message: string; readonly onWire: boolean }>\n> = {\n',
    ...codes.map(
      ([code, { status, message, wire_code }]) =>
        `  ${code}: { status: ${status}, message: ${JSON.stringify(message)}, onWire: ${wire_code !== false} },\n`,
    ),
    '};\n',
  ].join('');
}
