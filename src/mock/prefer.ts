/** What a client asks for with the header `Prefer` (RFC 7240). */
export interface Preference {
  /** Status of the answer, as text. */
  readonly code?: string;
  /** Name of the example. */
  readonly example?: string;
}

/**
 * Reads `code` and `example` from the header's value; other preferences are ignored, as RFC 7240 §2 has it.
 *
 * NOTE: `;` separates preferences too, since clients of other mock servers write `code=404; example=name`.
 */
export function parsePrefer(header: string | undefined): Preference {
  const preference: { code?: string; example?: string } = {};
  for (const item of (header ?? '').split(/[,;]/)) {
    const [, name, quoted, plain] = /^\s*(code|example)\s*=\s*(?:"([^"]*)"|([^\s"]*))\s*$/i.exec(item) ?? [];
    if (name === undefined) continue;
    const key = name.toLowerCase() as 'code' | 'example';
    // RFC 7240 §2: of a preference that is given twice the first one counts.
    preference[key] ??= quoted ?? plain ?? '';
  }
  return preference;
}
