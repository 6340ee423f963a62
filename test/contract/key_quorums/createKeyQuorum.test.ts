import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const pemOf = (key: string) =>
  `-----BEGIN PUBLIC KEY-----\n${key.match(/.{1,64}/g)?.join('\n')}\n-----END PUBLIC KEY-----\n`;

test('a quorum of keys, a user and a quorum is returned as given, with keys in base64', async () => {
  await using sandbox = await startSandbox();
  const alice = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'alice' } });
  const nested = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [carolKey.publicKey] } });
  expect(nested.body).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    display_name: null,
    authorization_threshold: null,
    authorization_keys: [{ public_key: carolKey.publicKey, display_name: null }],
    user_ids: null,
  });
  const { body } = await call(sandbox, 'createKeyQuorum', {
    body: {
      display_name: 'Board',
      public_keys: [pemOf(bobKey.publicKey), aliceKey.publicKey],
      user_ids: [alice.body.id],
      key_quorum_ids: [nested.body.id],
      authorization_threshold: 3,
    },
  });
  expect(body).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    display_name: 'Board',
    authorization_threshold: 3,
    authorization_keys: [
      { public_key: bobKey.publicKey, display_name: null },
      { public_key: aliceKey.publicKey, display_name: null },
    ],
    user_ids: [alice.body.id],
    key_quorum_ids: [nested.body.id],
  });
  expect((await call(sandbox, 'getKeyQuorum', { path: { key_quorum_id: body.id } })).body).toEqual(body);
});

test('an invalid quorum is refused with the name of the field', async () => {
  await using sandbox = await startSandbox();
  const spki = Buffer.from(aliceKey.publicKey, 'base64');
  const offCurve = Buffer.from(spki);
  offCurve[90] = (offCurve[90] ?? 0) ^ 1;
  const k256 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey;
  const cases: [body: object, error: RegExp][] = [
    [{}, /expected at least one of/],
    [{ display_name: 'Empty' }, /expected at least one of/],
    [{ public_keys: [] }, /^\/public_keys/],
    [{ public_keys: [offCurve.toString('base64')] }, /^\/public_keys\/0: expected a point on the curve/],
    [
      { public_keys: [k256.export({ format: 'der', type: 'spki' }).toString('base64')] },
      /^\/public_keys\/0: expected a key on the curve P-256, got one on another curve/,
    ],
    [
      { public_keys: [spki.subarray(26).toString('base64')] },
      /^\/public_keys\/0: expected a DER SubjectPublicKeyInfo, got a raw point/,
    ],
    [
      { public_keys: [`${pemOf(aliceKey.publicKey).trimEnd()}garbage`] },
      /^\/public_keys\/0: expected a single PEM block/,
    ],
    [
      { public_keys: [spki.subarray(0, 50).toString('base64')] },
      /^\/public_keys\/0: expected 91 bytes of DER, got 50/,
    ],
    [
      { public_keys: [aliceKey.publicKey, aliceKey.publicKey] },
      /^\/public_keys\/1: expected distinct members/,
    ],
    [
      { public_keys: [aliceKey.publicKey], authorization_threshold: 2 },
      /^\/authorization_threshold: expected at most 1/,
    ],
    [{ public_keys: [aliceKey.publicKey], authorization_threshold: 0 }, /^\/authorization_threshold/],
    [{ public_keys: [aliceKey.publicKey], authorization_threshold: 1.5 }, /^\/authorization_threshold/],
    [{ user_ids: ['did:service:cm00000000000000000000000'] }, /^\/user_ids: no user/],
    [{ key_quorum_ids: ['a'.repeat(24)] }, /^Unable to find the specified key quorums for this app\.$/],
    [{ public_keys: [aliceKey.publicKey], threshold: 1 }, /threshold/],
  ];
  for (const [body, error] of cases) {
    const answer = await refusal(sandbox, 'createKeyQuorum', { body });
    expect(answer).toEqual({
      status: 400,
      body: {
        error: expect.stringMatching(error),
        code: 'invalid_data',
        data: { issues: expect.any(Array) },
      },
    });
  }
});

test('quorums nest one level deep', async () => {
  await using sandbox = await startSandbox();
  const leaf = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } });
  const middle = await call(sandbox, 'createKeyQuorum', { body: { key_quorum_ids: [leaf.body.id] } });
  const { status, body } = await refusal(sandbox, 'createKeyQuorum', {
    body: { key_quorum_ids: [middle.body.id] },
  });
  expect([status, body.code, body.error]).toEqual([
    400,
    'invalid_data',
    `/key_quorum_ids: key quorum \`${middle.body.id}\` has key quorums as members; nesting is one level deep`,
  ]);
});
