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
    const equals = item.indexOf('=');
    const key = item.slice(0, Math.max(0, equals)).trim().toLowerCase();
    if (key !== 'code' && key !== 'example') continue;
    const [, quoted, plain] = /^(?:"([^"]*)"|([^\s"]*))$/.exec(item.slice(equals + 1).trim()) ?? [];
    const chosen = quoted ?? plain;
    // RFC 7240 §2: the first of several equal preferences counts.
    if (chosen !== undefined) preference[key] ??= chosen;
  }
  return preference;
}
