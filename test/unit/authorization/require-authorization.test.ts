import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKeyQuorum } from '../../../src/domain/access/key-quorums/key-quorum.ts';
import { resolveOwner } from '../../../src/domain/access/key-quorums/resolve-owner.ts';
import {
  type Eligible,
  requireAuthorization,
} from '../../../src/domain/access/owners/require-authorization.ts';
import { createUserKey } from '../../../src/domain/wallets/user-keys/user-key.ts';
import type { CreateKeyQuorumRequest } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openHouse, payloads, type Request, signer, signWith, startMs } from './house-of-rows.ts';

const ann = signer(1);
const bob = signer(2);
const cid = signer(3);
const dan = signer(4);
const stranger = signer(9);

describe.each(databaseKinds)('requireAuthorization on %s', (kind) => {
  let house: Awaited<ReturnType<typeof openHouse>>;
  beforeAll(async () => {
    house = await openHouse(kind);
  });
  afterAll(() => house.close());

  const quorumOf = async (input: CreateKeyQuorumRequest) =>
    (await house.operate((context) => createKeyQuorum(context, input))).id;
  const ask = (eligible: Eligible, request: Request = {}) =>
    house.operate(async (context) => (await requireAuthorization(context, eligible)).party, request);
  const refusal = (eligible: Eligible, request: Request = {}) =>
    ask(eligible, request).then(
      () => 'accepted',
      (error) => [error.status, error.code, error.data],
    );
  const twoOfThree = () =>
    quorumOf({ public_keys: [ann.publicKey, bob.publicKey, cid.publicKey], authorization_threshold: 2 });

  test('a resource without an owner requires nothing, and signatures are ignored', async () => {
    expect(await ask({ ownerId: null })).toEqual({ kind: 'none' });
    expect(await ask({ ownerId: null }, { signatures: ['garbage'] })).toEqual({ kind: 'none' });
    const signers = [{ signerId: await twoOfThree() }];
    expect(await ask({ ownerId: null, signers }, { signatures: [ann.sign(), bob.sign()] })).toEqual({
      kind: 'none',
    });
  });

  test('two of three sign, in any order, with or without a third signature', async () => {
    const ownerId = await twoOfThree();
    for (const signatures of [
      [ann.sign(), bob.sign()],
      [cid.sign(), ann.sign()],
      [ann.sign(), bob.sign(), cid.sign()],
      [stranger.sign(), 'garbage', ann.sign(), bob.sign(), stranger.sign()],
    ]) {
      expect(await ask({ ownerId }, { signatures })).toEqual({ kind: 'owner' });
    }
  });

  test('the payloads that the signatures cover are returned for the key store', async () => {
    const covered = (ownerId: string | null, signatures: string[]) =>
      house.operate(
        async (context) =>
          (await requireAuthorization(context, { ownerId })).covered.map((payload) =>
            Buffer.from(payload).toString(),
          ),
        { signatures, payloads: [first, second] },
      );
    const [first, second] = ['{"url":"https://one.test"}', '{"url":"https://two.test"}'] as const;
    const ownerId = await quorumOf({
      public_keys: [ann.publicKey, bob.publicKey],
      authorization_threshold: 2,
    });
    expect(await covered(ownerId, [ann.sign(first), bob.sign(first)])).toEqual([first]);
    expect(await covered(ownerId, [ann.sign(second), bob.sign(second)])).toEqual([second]);
    expect(await covered(ownerId, [ann.sign(first), bob.sign(second)])).toEqual([first, second]);
    expect(await covered(null, [ann.sign(first), bob.sign(first)])).toEqual([]);
  });

  test.each([
    ['no signature', 'missing_or_empty_authorization_header', []],
    ['one signature', 'incorrect_quantity_of_authorization_signatures', [ann.sign()]],
    ['two by strangers', 'zero_correct_authorization_signatures', [stranger.sign(), dan.sign()]],
    ['two over another request', 'zero_correct_authorization_signatures', [ann.sign('{}'), bob.sign('{}')]],
    ['two that are no signatures', 'zero_correct_authorization_signatures', ['x', '']],
    [
      'one valid and one of an unrelated key',
      'insufficient_correct_authorization_signatures',
      [ann.sign(), dan.sign()],
    ],
    ['two of the same member', 'insufficient_correct_authorization_signatures', [ann.sign(), ann.sign()]],
  ])('two of three with %s: %s', async (_, code, signatures) => {
    expect(await refusal({ ownerId: await twoOfThree() }, { signatures })).toEqual([401, code, undefined]);
  });

  test('other requests run while a hundred wrong signatures are checked', async () => {
    const publicKeys = Array.from({ length: 99 }, (_, index) => signer(index + 20).publicKey);
    const ownerId = await quorumOf({
      public_keys: [ann.publicKey, ...publicKeys],
      authorization_threshold: 1,
    });
    const signatures = Array.from({ length: 100 }, (_, index) => stranger.sign(`another request ${index}`));
    let [turns, isDone] = [0, false];
    const countTurns = () => {
      turns += 1;
      if (!isDone) setImmediate(countTurns);
    };
    setImmediate(countTurns);
    const refused = await refusal({ ownerId }, { signatures });
    isDone = true;
    expect(refused).toEqual([401, 'zero_correct_authorization_signatures', undefined]);
    expect(turns).toBeGreaterThan(20);
  });

  test('a nested quorum counts as one member', async () => {
    const nested = await twoOfThree();
    const ownerId = await quorumOf({ public_keys: [dan.publicKey], key_quorum_ids: [nested] });
    expect(await ask({ ownerId }, { signatures: [ann.sign(), dan.sign(), cid.sign()] })).toEqual({
      kind: 'owner',
    });
    expect(await refusal({ ownerId }, { signatures: [ann.sign(), bob.sign()] })).toEqual([
      401,
      'incorrect_quantity_of_authorization_signatures',
      undefined,
    ]);
    expect(await refusal({ ownerId }, { signatures: [ann.sign(), bob.sign(), cid.sign()] })).toEqual([
      401,
      'insufficient_correct_authorization_signatures',
      undefined,
    ]);
  });

  test('the owner precedes the signers, which keep their order', async () => {
    const ownerId = await quorumOf({ public_keys: [ann.publicKey] });
    const first = { signerId: await quorumOf({ public_keys: [bob.publicKey] }), overridePolicyIds: ['p1'] };
    const second = {
      signerId: await quorumOf({ public_keys: [bob.publicKey, cid.publicKey], authorization_threshold: 1 }),
    };
    const eligible = { ownerId, signers: [first, second] };
    expect(await ask(eligible, { signatures: [bob.sign(), ann.sign()] })).toEqual({ kind: 'owner' });
    expect(await ask(eligible, { signatures: [bob.sign()] })).toEqual({ kind: 'signer', ...first });
    expect(await ask(eligible, { signatures: [cid.sign()] })).toEqual({ kind: 'signer', ...second });
    expect(await ask({ ...eligible, signers: [second, first] }, { signatures: [bob.sign()] })).toEqual({
      kind: 'signer',
      ...second,
    });
  });

  test('signers do not count if only the owner may authorize', async () => {
    const ownerId = await quorumOf({ public_keys: [ann.publicKey] });
    expect(await refusal({ ownerId }, { signatures: [bob.sign()] })).toEqual([
      401,
      'zero_correct_authorization_signatures',
      undefined,
    ]);
  });

  test('a user signs with a valid key; an expired and a missing key have their own errors', async () => {
    const userId = await house.addUser('alice');
    const ownerId = await house.operate((context) => resolveOwner(context, { owner: { user_id: userId } }));
    const eligible = { ownerId: ownerId ?? null };
    const signatures = [stranger.sign()];
    expect(await refusal(eligible, { signatures })).toEqual([401, 'no_valid_user_session_keys', undefined]);

    const old = await house.operate((context) => createUserKey(context, { userId }));
    const fresh = await house.operate((context) => createUserKey(context, { userId }));
    for (const { privateKey } of [old, fresh]) {
      const signature = signWith(privateKey as string, payloads[0] ?? '');
      expect(await ask(eligible, { signatures: [signature] })).toEqual({ kind: 'owner' });
    }
    expect(await refusal(eligible, { signatures })).toEqual([
      401,
      'zero_correct_authorization_signatures',
      undefined,
    ]);

    house.clock.set(old.expiresAtMs - 1);
    const signature = signWith(old.privateKey as string, payloads[0] ?? '');
    expect(await ask(eligible, { signatures: [signature] })).toEqual({ kind: 'owner' });
    house.clock.set(old.expiresAtMs);
    expect(await refusal(eligible, { signatures: [signature] })).toEqual([
      401,
      'user_session_keys_expired',
      undefined,
    ]);
    expect(await refusal(eligible, { signatures })).toEqual([401, 'no_valid_user_session_keys', undefined]);
    house.clock.set(startMs);
  });

  test('a key bound to intents authorizes nothing else', async () => {
    const userId = await house.addUser('bea');
    const ownerId = await house.operate((context) => resolveOwner(context, { owner: { user_id: userId } }));
    const bound = await house.operate((context) => createUserKey(context, { userId, intentIds: ['i1'] }));
    const signatures = [signWith(bound.privateKey as string, payloads[0] ?? '')];
    expect(await refusal({ ownerId: ownerId ?? null }, { signatures })).toEqual([
      401,
      'no_valid_user_session_keys',
      undefined,
    ]);
  });

  test('a missing owner is an internal error', async () => {
    await expect(ask({ ownerId: 'a'.repeat(24) }, { signatures: [ann.sign()] })).rejects.toThrow(
      /does not exist/,
    );
  });

  describe('with diagnostics', () => {
    test('with diagnostics: shows the expected payload, each signature, and what is missing', async () => {
      const ownerId = await twoOfThree();
      const request = { signatures: [ann.sign(), bob.sign('{}'), 'garbage'], diagnostics: true };
      expect(await refusal({ ownerId }, request)).toEqual([
        401,
        'insufficient_correct_authorization_signatures',
        {
          signature_check: {
            expected_payloads: payloads,
            matched_urls: ['https://a/v1/x'],
            signed_parts: {
              method: 'PATCH',
              urls: ['https://a/v1/x'],
              bodies: ['{"a":1}'],
              headers: { 'service-app-id': 'acme' },
              request_expiry: '(not sent)',
            },
            signatures: [
              {
                index: 0,
                verified: true,
                public_key: ann.publicKey,
                counts: true,
                key_quorum_ids: [ownerId],
              },
              {
                index: 1,
                verified: false,
                encoding: 'der',
                reason: 'the signature verifies under no eligible key for any expected payload',
                recovered_keys: [expect.any(String), expect.any(String)],
              },
              {
                index: 2,
                verified: false,
                encoding: 'not base64',
                reason: 'expected base64 of a DER signature, got one that is not base64',
              },
            ],
            parties: [
              {
                role: 'owner',
                key_quorum_id: ownerId,
                authorization_threshold: 2,
                counted: 1,
                missing: 1,
                public_keys: [
                  { public_key: ann.publicKey, signed: true },
                  { public_key: bob.publicKey, signed: false },
                  { public_key: cid.publicKey, signed: false },
                ],
                users: [],
                key_quorums: [],
              },
            ],
          },
        },
      ]);
    });

    test('with diagnostics: names the mistake when a signature covers a payload with a known difference', async () => {
      const ownerId = await quorumOf({ public_keys: [dan.publicKey] });
      const slash = (payloads[0] ?? '').replace('https://a/v1/x', 'https://a/v1/x/');
      const [, , data] = (await refusal(
        { ownerId },
        { signatures: [dan.sign(slash)], diagnostics: true },
      )) as [number, string, { signature_check: { signatures: unknown[] } }];
      expect(data.signature_check.signatures).toEqual([
        {
          index: 0,
          verified: false,
          encoding: 'der',
          reason: 'the URL ended in a slash; everything else matches',
          differs_in: 'url',
          public_key: dan.publicKey,
        },
      ]);
    });

    test('also explains codes that are returned before any verification', async () => {
      const ownerId = await twoOfThree();
      const [, none] = (await refusal({ ownerId }, { diagnostics: true })) as [number, string];
      expect(none).toBe('missing_or_empty_authorization_header');
      const [, few, data] = (await refusal({ ownerId }, { signatures: [ann.sign()], diagnostics: true })) as [
        number,
        string,
        { signature_check: { parties: { counted: number; missing: number }[] } },
      ];
      expect(few).toBe('incorrect_quantity_of_authorization_signatures');
      expect(data.signature_check.parties[0]).toMatchObject({ counted: 1, missing: 1 });
    });
  });
});
