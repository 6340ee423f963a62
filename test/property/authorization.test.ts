import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countQuorum, fewestSignatures, type Quorum } from '../../src/engine/authorization/quorum.ts';
import { canonicalPayloads } from '../../src/engine/authorization/request-signatures.ts';
import { verify } from '../support/verify.ts';

const keyNames = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7'];
const someKeys = (maxLength: number) => fc.array(fc.constantFrom(...keyNames), { maxLength });

const users = fc.array(fc.record({ userId: fc.constantFrom('u0', 'u1', 'u2'), liveKeys: someKeys(3) }), {
  maxLength: 3,
});
const threshold = fc.option(fc.integer({ min: 1, max: 6 }));
const child = fc.record({
  id: fc.constantFrom('c0', 'c1', 'c2'),
  threshold,
  publicKeys: someKeys(4),
  users,
  quorums: fc.constant([] as Quorum[]),
});
const quorum: fc.Arbitrary<Quorum> = fc.record({
  id: fc.constant('q'),
  threshold,
  publicKeys: someKeys(5),
  users,
  quorums: fc.array(child, { maxLength: 5 }).map(distinctById),
});

test('quorum counting equals the naive count', () => {
  fc.assert(
    fc.property(quorum, someKeys(8), (any, signed) => {
      expect(countQuorum(any, new Set(signed)).satisfied).toBe(naivelySatisfied(any, signed));
    }),
    { numRuns: process.env.TEST_LONG === '1' ? 30_000 : 1_000 },
  );
});

test('a further signature never revokes authorization', () => {
  fc.assert(
    fc.property(quorum, someKeys(8), fc.constantFrom(...keyNames), (any, signed, further) => {
      const before = countQuorum(any, new Set(signed));
      const after = countQuorum(any, new Set([...signed, further]));
      expect(after.count).toBeGreaterThanOrEqual(before.count);
      expect(Number(after.satisfied)).toBeGreaterThanOrEqual(Number(before.satisfied));
    }),
    { numRuns: process.env.TEST_LONG === '1' ? 30_000 : 1_000 },
  );
});

test('no quorum is satisfied by fewer keys than its minimum of signatures', () => {
  fc.assert(
    fc.property(quorum, someKeys(8), (any, signed) => {
      const keys = new Set(signed);
      if (countQuorum(any, keys).satisfied) expect(keys.size).toBeGreaterThanOrEqual(fewestSignatures(any));
    }),
    { numRuns: process.env.TEST_LONG === '1' ? 30_000 : 1_000 },
  );
});

const jsonObject = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ depthSize: 'small' }));

test('the payload does not depend on the order of keys', () => {
  fc.assert(
    fc.property(jsonObject, jsonObject.map(stringValues), (body, headers) => {
      const request = { method: 'POST', urls: ['https://a/v1'], body, headers };
      const reversed = {
        ...request,
        body: reverseKeys(body),
        headers: reverseKeys(headers) as Record<string, string>,
      };
      expect(canonicalPayloads(reversed)).toEqual(canonicalPayloads(request));
    }),
  );
});

const secret = new Uint8Array(32).fill(0x11);
const spki = Buffer.concat([
  Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'),
  p256.getPublicKey(secret, false),
]).toString('base64');

const request = fc.record({
  method: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
  url: fc.webUrl({ withQueryParameters: true }),
  body: fc.dictionary(fc.string(), fc.jsonValue({ depthSize: 'small' }), { minKeys: 1 }),
  headers: fc.record({
    'service-app-id': fc.string({ minLength: 1 }),
    'service-request-expiry': fc.integer({ min: 1 }).map(String),
    'service-idempotency-key': fc.string({ minLength: 1 }),
  }),
});

test('a signature made by @noble/curves over the payload verifies', () => {
  fc.assert(
    fc.property(request, (signed) => {
      expect(keysFor(signed, signText(signed))).toEqual([spki]);
    }),
    { numRuns: 30 },
  );
});

test('one flipped byte in method, url, body or headers is refused', () => {
  fc.assert(
    fc.property(request, fc.nat(), fc.integer({ min: 1, max: 127 }), (signed, place, mask) => {
      const text = Buffer.from(payloadOf(signed));
      const changed = Buffer.from(text);
      changed[place % text.length] = (changed[place % text.length] ?? 0) ^ mask;
      const { keys } = verify({
        signatures: [signText(signed)],
        payloads: [changed],
        keys: [spki],
      });
      expect([...keys]).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test('one changed character in any part of the request is refused', () => {
  fc.assert(
    fc.property(
      request,
      fc.constantFrom('method', 'url', 'body', 'headers'),
      fc.nat(),
      (signed, part, place) => {
        const changed = changePart(signed, part as 'method', place);
        expect(keysFor(changed, signText(signed))).toEqual([]);
      },
    ),
    { numRuns: 200 },
  );
});

test('one changed character of the signature is refused', () => {
  fc.assert(
    fc.property(request, fc.nat(), fc.integer({ min: 1, max: 127 }), (signed, place, mask) => {
      const signature = Buffer.from(signText(signed), 'latin1');
      const index = place % signature.length;
      signature[index] = (signature[index] ?? 0) ^ mask;
      expect(keysFor(signed, signature.toString('latin1'))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

type Request = { method: string; url: string; body: unknown; headers: Record<string, string> };

function payloadOf({ method, url, body, headers }: Request): Uint8Array {
  const [payload] = canonicalPayloads({ method, urls: [url], body, headers });
  if (payload === undefined) throw new Error('no payload was made');
  return payload;
}

function signText(signed: Request): string {
  return Buffer.from(p256.sign(payloadOf(signed), secret, { format: 'der' })).toString('base64');
}

function keysFor({ method, url, body, headers }: Request, signature: string): string[] {
  const payloads = canonicalPayloads({ method, urls: [url], body, headers });
  return [...verify({ signatures: [signature], payloads, keys: [spki] }).keys];
}

function changePart(signed: Request, part: 'method' | 'url' | 'body' | 'headers', place: number): Request {
  if (part === 'body') return { ...signed, body: { ...(signed.body as object), [`added${place}`]: place } };
  if (part === 'headers') {
    const names = Object.keys(signed.headers);
    const name = names[place % names.length] ?? '';
    return { ...signed, headers: { ...signed.headers, [name]: `${signed.headers[name]}x` } };
  }
  const text = signed[part];
  const index = place % text.length;
  const letter = text[index] === 'x' ? 'y' : 'x';
  return { ...signed, [part]: text.slice(0, index) + letter + text.slice(index + 1) };
}

/** The definition implemented naively: checks every member. */
function naivelySatisfied(any: Quorum, signed: readonly string[]): boolean {
  const voters: boolean[] = [];
  const seen: string[] = [];
  const addOnce = (name: string, agrees: () => boolean) => {
    if (seen.includes(name)) return;
    seen.push(name);
    voters.push(agrees());
  };
  for (const key of any.publicKeys) addOnce(`key ${key}`, () => signed.includes(key));
  for (const { userId } of any.users) {
    const hers = any.users.filter((user) => user.userId === userId).flatMap((user) => user.liveKeys);
    addOnce(`user ${userId}`, () => hers.some((key) => signed.includes(key)));
  }
  for (const nested of any.quorums) addOnce(`quorum ${nested.id}`, () => naivelySatisfied(nested, signed));
  const agreeing = voters.filter((agrees) => agrees).length;
  if (voters.length === 0) return false;
  return any.threshold === null ? agreeing === voters.length : agreeing >= any.threshold;
}

function distinctById(quorums: Quorum[]): Quorum[] {
  return [...new Map(quorums.map((nested) => [nested.id, nested])).values()];
}

function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reverseKeys(member)]),
  );
}

function stringValues(value: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, JSON.stringify(member)]));
}
