/** The preferences in a `Prefer` header (RFC 7240). */
export interface Preference {
  /** Status of the response, as text. */
  readonly code?: string;
  /** Name of the example. */
  readonly example?: string;
}

/**
 * Parses `code` and `example` from the header; ignores other preferences (RFC 7240 §2).
 *
 * NOTE: also accepts `;` between preferences, because clients of other mock servers send `code=404; example=name`.
 */
export function parsePrefer(header: string | undefined): Preference {
  const preference: { code?: string; example?: string } = {};
  for (const item of (header ?? '').split(/[,;]/)) {
    const [, name, quoted, plain] = /^\s*(code|example)\s*=\s*(?:"([^"]*)"|([^\s"]*))\s*$/i.exec(item) ?? [];
    if (name === undefined) continue;
    const key = name.toLowerCase() as 'code' | 'example';
    // RFC 7240 §2: the first of several equal preferences counts.
    preference[key] ??= quoted ?? plain ?? '';
  }
  return preference;
}
