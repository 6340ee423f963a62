import type { AnsweredRequest } from '../../ports/requests.ts';

/** The names of the secret properties in the bodies of each operation, as the API document marks them. */
export type SecretProperties = Readonly<
  Record<string, { readonly request: readonly string[]; readonly response: readonly string[] }>
>;

/** Returns messages in the log without their secrets. */
export interface Redaction {
  requestHeaders(answered: AnsweredRequest): Header[];
  responseHeaders(answered: AnsweredRequest): Header[];
  /** Returns the parsed body. Returns null if there is none, or if it cannot be parsed and may contain a secret. */
  requestBody(answered: AnsweredRequest): unknown;
  responseBody(answered: Pick<AnsweredRequest, 'responseText' | 'status' | 'operation'>): unknown;
}

export interface Header {
  readonly name: string;
  readonly value: string;
}

const REMOVED = '[removed]';

const secretHeader =
  /^(authorization|proxy-authorization|cookie|set-cookie|[a-z0-9]+-authorization-signature)$/;
const NEUTRAL = 'service';

/**
 * Creates the redaction.
 *
 * CHOICE: authorization signatures are removed from the log like credentials, because they authorize a request until
 * it expires. Signatures made by wallets are kept, because they are the result of a request.
 *
 * @param prefix the word that clients use in names in place of `service`.
 */
export function redactionFor(secrets: SecretProperties, prefix: string): Redaction {
  const branded = (names: readonly string[]): string[] =>
    names.map((name) => (name.startsWith(`${NEUTRAL}_`) ? prefix + name.slice(NEUTRAL.length) : name));
  const everywhere = new Set(branded(Object.values(secrets).flatMap(({ request }) => request)));
  const nowhere: ReadonlySet<string> = new Set();
  const namesIn = (operation: string | undefined, part: 'request' | 'response'): ReadonlySet<string> => {
    // The path is misspelled, so the body may belong to any operation.
    if (operation === undefined) return part === 'request' ? everywhere : nowhere;
    const names = secrets[operation]?.[part];
    return names === undefined ? nowhere : new Set(branded(names));
  };
  return {
    requestHeaders: ({ rawHeaders }) =>
      Array.from({ length: rawHeaders.length / 2 }, (_, index) =>
        header(rawHeaders[2 * index]!, rawHeaders[2 * index + 1]!),
      ),
    responseHeaders: ({ responseHeaders }) =>
      responseHeaders
        .flatMap((part) => Object.entries(part))
        .map(([name, value]) => header(name, [value].flat().join(', '))),
    requestBody({ rawBody, operation }) {
      if (rawBody.length === 0) return null;
      return readBody(Buffer.from(rawBody).toString('utf8'), namesIn(operation, 'request'));
    },
    responseBody({ responseText, status, operation }) {
      if (responseText === undefined) return null;
      // In the error response to a denied request, `code` is not a secret.
      return readBody(responseText, status < 400 ? namesIn(operation, 'response') : nowhere);
    },
  };
}

function header(name: string, value: string): Header {
  return { name, value: secretHeader.test(name.toLowerCase()) ? REMOVED : value };
}

/**
 * The maximum depth of a body, more than any body of the API has. It protects the call stack, because bodies are
 * formatted recursively.
 */
const MAX_DEPTH = 100;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function readBody(text: string, secrets: ReadonlySet<string>): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (!isDeeper(value, MAX_DEPTH)) return redact(value, secrets);
  } catch {
    // The text is not JSON, or it is nested too deeply.
  }
  if (/^[A-Za-z0-9_]+=[^\s{["]*$/.test(text)) {
    return redact(Object.fromEntries(new URLSearchParams(text)), secrets);
  }
  return secrets.size === 0 ? text : null;
}

function redact(value: unknown, secrets: ReadonlySet<string>): unknown {
  if (secrets.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redact(item, secrets));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      secrets.has(name) ? REMOVED : redact(inner, secrets),
    ]),
  );
}
