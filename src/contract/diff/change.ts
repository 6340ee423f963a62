/**
 * `breaking`: a client of the old document can fail. `compatible`: it cannot, though the contract differs. `text`: only
 * descriptions and examples differ.
 */
export type Severity = 'breaking' | 'compatible' | 'text';

/** The kinds of changes, with what they mean. */
export const changeRules = {
  'operation-removed': 'An operation is not there any more.',
  'operation-added': 'An operation is new.',
  'operation-renamed': 'An operation has another operationId; generated clients have another method.',
  'operation-changed': 'Something else of an operation changed.',
  'security-changed': 'An operation requires other credentials.',
  'parameter-removed': 'A parameter is not there any more.',
  'parameter-added': 'A parameter is new.',
  'body-removed': 'A body is not there any more.',
  'body-added': 'A body is new.',
  'media-type-removed': 'A media type of a body is not there any more.',
  'media-type-added': 'A media type of a body is new.',
  'status-removed': 'A documented status is not there any more.',
  'status-added': 'A documented status is new.',
  'error-code-removed': 'A documented error code is not there any more.',
  'error-code-added': 'A documented error code is new.',
  'property-removed': 'A property is not there any more.',
  'property-added': 'A property is new.',
  'required-changed': 'A parameter, body or property is required now, or not any more.',
  'type-changed': 'A value has other types.',
  'values-changed': 'The values of an enumeration changed.',
  'branch-removed': 'A branch of a union is not there any more.',
  'branch-added': 'A branch of a union is new.',
  'limit-changed': 'A limit, pattern or format of a value changed.',
  'openness-changed': 'Whether undeclared properties are allowed changed.',
  'schema-changed': 'Something else of a schema changed.',
  'event-removed': 'A webhook event is not there any more.',
  'event-added': 'A webhook event is new.',
  'text-changed': 'A description or example changed.',
} as const;

export interface Change {
  readonly severity: Severity;
  readonly rule: keyof typeof changeRules;
  /** `createWallet`, `createWallet 400`, `Wallet.owner_id (response)`. */
  readonly place: string;
  readonly message: string;
}

/** Collects changes; the same change of a shared schema counts once. */
export interface Changes {
  add(severity: Severity, rule: Change['rule'], place: string, message: string): void;
  list(): readonly Change[];
}

export function collectChanges(): Changes {
  const found = new Map<string, Change>();
  return {
    add(severity, rule, place, message) {
      found.set(`${severity} ${rule} ${place} ${message}`, { severity, rule, place, message });
    },
    list: () => [...found.values()],
  };
}

/** A value in a message, not longer than a line. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
  return `\`${text.length > 80 ? `${text.slice(0, 80)}…` : text}\``;
}
