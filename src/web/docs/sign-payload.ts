const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/**
 * Makes an authorization signature. `privateKey` is PKCS#8 in base64, with or without the header and line breaks of
 * PEM.
 *
 * @throws DOMException if it is not a P-256 key.
 */
export async function signPayload(payload: string, privateKey: string): Promise<string> {
  const text = privateKey.replace(/-----[^-]*-----|\s/g, '');
  const der = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
  const raw = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(payload));
  return btoa(String.fromCharCode(...derSignature(new Uint8Array(raw))));
}

/** Converts a signature to DER, because WebCrypto returns `r || s`. */
function derSignature(raw: Uint8Array): number[] {
  const half = raw.length / 2;
  const inner = [...derInteger(raw.subarray(0, half)), ...derInteger(raw.subarray(half))];
  return [0x30, inner.length, ...inner];
}

/** Removes superfluous leading zeros, and adds one if the first bit would be read as a sign (X.690 section 8.3). */
function derInteger(bytes: Uint8Array): number[] {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start === -1 ? [0] : [...bytes.subarray(start)];
  const padded = (digits[0] ?? 0) >= 0x80 ? [0, ...digits] : digits;
  return [0x02, padded.length, ...padded];
}

/**
 * Serializes a value as canonical JSON (RFC 8785): members are sorted by UTF-16 code units, and undefined members are
 * omitted.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`).join(',')}}`;
}

/**
 * Makes names in an example body unique, so that the body can be sent several times: external ids, and the accounts
 * of new users.
 *
 * @param suffix lower-case letters and digits.
 */
export function withFreshNames(value: unknown, suffix: string, isAccount = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withFreshNames(item, suffix, isAccount));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const isName =
        name === 'external_id' || (isAccount && (name === 'address' || name === 'custom_user_id'));
      if (isName && typeof inner === 'string') return [name, fresh(inner, suffix)];
      return [name, withFreshNames(inner, suffix, name === 'linked_accounts')];
    }),
  );
}

/** Makes a name unique. An email address keeps its domain, and a blockchain address stays unchanged. */
function fresh(name: string, suffix: string): string {
  if (/^0x|^[1-9A-HJ-NP-Za-km-z]{32,}$/.test(name)) return name;
  const [local = '', domain] = name.split('@');
  return domain === undefined ? `${name}-${suffix}` : `${local}-${suffix}@${domain}`;
}

/** Returns a suffix that is different in each millisecond. */
export function newSuffix(): string {
  return Math.round(performance.timeOrigin + performance.now()).toString(36);
}
