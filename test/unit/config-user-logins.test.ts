import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { userLogins } from '../../src/config/signer.ts';
import { temporaryFolder } from '../support/run-custos.ts';

const path = join(temporaryFolder(), 'logins.json');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
const pem = rsa.export({ format: 'pem', type: 'spki' }).toString();

function read(content: unknown) {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  const faults: string[] = [];
  return { logins: userLogins(faults, { CUSTOS_USER_LOGINS_FILE: path }), faults };
}

test('without a file, no login is verified', () => {
  expect(userLogins([], {}).size).toBe(0);
});

test('a login has one key, or those of a JWKS that sign', () => {
  const jwk = p256.export({ format: 'jwk' });
  const { logins, faults } = read({
    acme: { verification_key: pem },
    globex: {
      keys: [
        { ...jwk, kid: 'a', use: 'sig' },
        { ...jwk, use: 'enc' },
      ],
      user_id_claim: 'uid',
      audiences: ['x'],
    },
  });
  expect(faults).toEqual([]);
  const [acme, globex] = [logins.get('acme')!, logins.get('globex')!];
  expect(acme).toMatchObject({
    userIdClaim: 'sub',
    audiences: [],
    keys: [{ algorithm: 'RS256', kid: undefined }],
  });
  expect(acme.keys[0]!.key.equals(rsa)).toBe(true);
  expect(globex).toMatchObject({
    userIdClaim: 'uid',
    audiences: ['x'],
    keys: [{ algorithm: 'ES256', kid: 'a' }],
  });
  expect(globex.keys).toHaveLength(1);
  expect(globex.keys[0]!.key.equals(p256)).toBe(true);
});

test.each([
  ['no JSON', '{'],
  ['a list', []],
  ['no key', { acme: {} }],
  ['two kinds of keys', { acme: { verification_key: pem, keys: [] } }],
  ['no key that signs', { acme: { keys: [] } }],
  ['no PEM', { acme: { verification_key: 'x' } }],
  ['keys that are no list', { acme: { keys: {} } }],
  ['a claim that is no text', { acme: { verification_key: pem, user_id_claim: 1 } }],
  ['audiences that are no texts', { acme: { verification_key: pem, audiences: [1] } }],
  [
    'a weak key',
    {
      acme: {
        verification_key: generateKeyPairSync('rsa', { modulusLength: 1024 })
          .publicKey.export({ format: 'pem', type: 'spki' })
          .toString(),
      },
    },
  ],
])('%s is a fault', (_, content) => {
  const { faults } = read(content);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(/^CUSTOS_USER_LOGINS_FILE: /);
});
