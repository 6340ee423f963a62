// Signs the request with the P-256 keys in `privateKeys` (PKCS #8 in base64, several joined with commas), for wallets
// and policies that have an owner. Needs Web Crypto: Postman 11.35 or newer.
const keys = pm.variables.get('privateKeys') || '';
if (keys !== '') {
  const resolve = (text) => pm.variables.replaceIn(text);
  // RFC 8785.
  const canonical = (value) => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
    const names = Object.keys(value).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
  };
  const signed = ['app-id', 'idempotency-key', 'request-expiry'].map((name) => `service-${name}`);
  const headers = {};
  for (const { key, value, disabled } of pm.request.headers.all()) {
    if (!disabled && signed.includes(key.toLowerCase())) headers[key.toLowerCase()] = resolve(value);
  }
  const text = pm.request.body?.raw ? resolve(pm.request.body.raw) : '';
  const payload = canonical({
    version: 1,
    method: pm.request.method,
    url: resolve(pm.request.url.toString()).replace(/\/$/, ''),
    body: text === '' ? '' : JSON.parse(text),
    headers,
  });
  // DER, of which Web Crypto returns `r || s`.
  const integer = (bytes) => {
    const digits = bytes.slice(bytes.findIndex((byte) => byte !== 0));
    return digits[0] >= 0x80 ? [2, digits.length + 1, 0, ...digits] : [2, digits.length, ...digits];
  };
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const signatures = keys.split(',').map(async (pkcs8) => {
    const der = Uint8Array.from(atob(pkcs8.trim()), (character) => character.charCodeAt(0));
    const key = await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
    const raw = Array.from(
      new Uint8Array(await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(payload))),
    );
    const inner = [...integer(raw.slice(0, 32)), ...integer(raw.slice(32))];
    return btoa(String.fromCharCode(0x30, inner.length, ...inner));
  });
  const value = (await Promise.all(signatures)).join(',');
  pm.request.headers.upsert({ key: 'service-authorization-signature', value });
}
