const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/**
 * An authorization signature. `privateKey`: PKCS#8 in base64, with or without the lines of PEM.
 *
 * @throws DOMException if it is no P-256 key.
 */
export async function signPayload(payload: string, privateKey: string): Promise<string> {
  const text = privateKey.replace(/-----[^-]*-----|\s/g, '');
  const der = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
  const raw = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(payload));
  return btoa(String.fromCharCode(...derSignature(new Uint8Array(raw))));
}

/** DER of a signature, of which WebCrypto returns `r || s`. */
function derSignature(raw: Uint8Array): number[] {
  const half = raw.length / 2;
  const inner = [...derInteger(raw.subarray(0, half)), ...derInteger(raw.subarray(half))];
  return [0x30, inner.length, ...inner];
}

/** No leading zeros, but one before a first bit that would be a sign (X.690 section 8.3). */
function derInteger(bytes: Uint8Array): number[] {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start === -1 ? [0] : [...bytes.subarray(start)];
  const padded = (digits[0] ?? 0) >= 0x80 ? [0, ...digits] : digits;
  return [0x02, padded.length, ...padded];
}
