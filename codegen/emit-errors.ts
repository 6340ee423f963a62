import type { CatalogueEntry, Document } from './document.ts';
import { header } from './document.ts';

/** Emits `errors.ts`: all error codes with status and default text, and whether the code is sent. */
export function emitErrors(document: Document, catalogue: Readonly<Record<string, CatalogueEntry>>): string {
  const codes = Object.entries(catalogue).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${header(document)}\n`,
    `export type ErrorCode =\n${codes.map(([code]) => `  | ${JSON.stringify(code)}`).join('\n')};\n\n`,
    'interface CatalogueEntry {\n',
    '  readonly status: number;\n',
    '  readonly message: string;\n',
    '  /** False for an internal code; the response then has no `code`. */\n',
    '  readonly onWire: boolean;\n',
    '  /** The code for OAuth clients (RFC 6749, section 5.2). */\n',
    '  readonly oauthError?: string;\n',
    '}\n\n',
    'export const errorCatalogue: Readonly<Record<ErrorCode, CatalogueEntry>> = {\n',
    ...codes.map(
      ([code, { status, message, wire_code, oauth_error }]) =>
        `  ${code}: { status: ${status}, message: ${JSON.stringify(message)}, onWire: ${wire_code !== false}${
          oauth_error === undefined ? '' : `, oauthError: ${JSON.stringify(oauth_error)}`
        } },\n`,
    ),
    '};\n',
  ].join('');
}
