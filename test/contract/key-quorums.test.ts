import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import { call, refusal } from '../support/call.ts';
import { startSandbox } from '../support/sandbox.ts';

describe('createKeyQuorum', () => {
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
});

describe('updateKeyQuorum', () => {
  const [alice, bob, carol] = [aliceKey, bobKey, carolKey];

  test('a change requires the old members; afterwards the new ones count', async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
    });
    const path = { key_quorum_id: made.body.id };
    const change = { path, body: { public_keys: [bob.publicKey, carol.publicKey] } };

    const early = await refusal(sandbox, 'updateKeyQuorum', change, {
      signWith: [bob.privateKey, carol.privateKey],
    });
    expect([early.status, early.body.code]).toEqual([401, 'insufficient_correct_authorization_signatures']);

    const changed = await call(sandbox, 'updateKeyQuorum', change, {
      signWith: [alice.privateKey, bob.privateKey],
    });
    expect(changed.body).toEqual({
      ...made.body,
      authorization_keys: [
        { public_key: bob.publicKey, display_name: null },
        { public_key: carol.publicKey, display_name: null },
      ],
    });

    const rename = { path, body: { display_name: 'Pair', authorization_threshold: 1 } };
    const late = await refusal(sandbox, 'updateKeyQuorum', rename, {
      signWith: [alice.privateKey, bob.privateKey],
    });
    expect([late.status, late.body.code]).toEqual([401, 'insufficient_correct_authorization_signatures']);
    const renamed = await call(sandbox, 'updateKeyQuorum', rename, {
      signWith: [carol.privateKey, bob.privateKey],
    });
    expect(renamed.body).toEqual({ ...changed.body, display_name: 'Pair', authorization_threshold: 1 });
  });

  test('updateKeyQuorum keeps users if only keys are given, and removes them with an empty list', async () => {
    await using sandbox = await startSandbox();
    const user = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'alice' } });
    const made = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [alice.publicKey], user_ids: [user.body.id], authorization_threshold: 1 },
    });
    const path = { key_quorum_id: made.body.id };
    const swapped = await call(
      sandbox,
      'updateKeyQuorum',
      { path, body: { public_keys: [bob.publicKey] } },
      { signWith: [alice.privateKey] },
    );
    expect(swapped.body).toMatchObject({ user_ids: [user.body.id] });
    const alone = await call(
      sandbox,
      'updateKeyQuorum',
      { path, body: { user_ids: [] } },
      { signWith: [bob.privateKey] },
    );
    expect(alone.body).toEqual({
      id: made.body.id,
      display_name: null,
      authorization_threshold: 1,
      authorization_keys: [{ public_key: bob.publicKey, display_name: null }],
      user_ids: null,
    });
  });

  test('updateKeyQuorum refuses a change that leaves no members, or a threshold above their number', async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
    });
    const path = { key_quorum_id: made.body.id };
    for (const [body, error] of [
      [{}, /./],
      [{ public_keys: [] }, /expected at least one of/],
      [
        { authorization_threshold: 3 },
        /^\/authorization_threshold: expected at most 2, the number of members, got 3$/,
      ],
      [
        { public_keys: [carol.publicKey] },
        /^\/authorization_threshold: expected at most 1, the number of members, got 2$/,
      ],
      [{ key_quorum_ids: [made.body.id] }, /^\/key_quorum_ids: a key quorum cannot be a member of itself$/],
    ] as const) {
      const options = { signWith: [alice.privateKey, bob.privateKey] };
      const answer = await refusal(sandbox, 'updateKeyQuorum', { path, body }, options);
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 'invalid_data', error: expect.stringMatching(error) },
      });
    }
    expect((await call(sandbox, 'getKeyQuorum', { path })).body).toEqual(made.body);
  });

  test('updateKeyQuorum can be changed 64 times, and is then replaced by another one', async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 1 },
    });
    const wallet = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner_id: made.body.id },
    });
    const path = { key_quorum_id: made.body.id };
    const signWith = [alice.privateKey];
    const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
    const use = { path: { wallet_id: wallet.body.id }, body: hello };
    const other = (index: number) => (index % 2 === 0 ? carol : bob).publicKey;
    for (let index = 0; index < 64; index += 1) {
      const body = { public_keys: [alice.publicKey, other(index)] };
      await call(sandbox, 'updateKeyQuorum', { path, body }, { signWith });
      // The vault follows some changes by the way, and the others at the end.
      if (index === 20) await call(sandbox, 'walletRpc', use, { signWith: [carol.privateKey] });
    }
    const change = { path, body: { public_keys: [alice.publicKey] } };
    const refused = await refusal(sandbox, 'updateKeyQuorum', change, { signWith });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_state']);

    // What does not change who may sign is not counted.
    await call(sandbox, 'updateKeyQuorum', { path, body: { display_name: 'Treasury' } }, { signWith });
    const [first, second] = [bob, carol].map(({ privateKey }) => ({ signWith: [privateKey] }));
    await call(sandbox, 'walletRpc', use, first);
    const former = await refusal(sandbox, 'walletRpc', use, second!);
    expect(former.body.code).toBe('zero_correct_authorization_signatures');
  });
});

describe('deleteKeyQuorum', () => {
  test("a quorum is deleted with its members' signatures", async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } });
    const path = { key_quorum_id: body.id };
    const unsigned = await refusal(sandbox, 'deleteKeyQuorum', { path });
    expect([unsigned.status, unsigned.body.code]).toEqual([401, 'missing_or_empty_authorization_header']);
    const done = await call(sandbox, 'deleteKeyQuorum', { path }, { signWith: [aliceKey.privateKey] });
    expect(done.body).toEqual({ success: true });
    for (const id of ['getKeyQuorum', 'deleteKeyQuorum'] as const) {
      expect(await refusal(sandbox, id, { path })).toEqual({
        status: 404,
        body: { error: 'Key quorum not found' },
      });
    }
  });

  test('a quorum that is an owner, a signer or nested cannot be deleted', async () => {
    await using sandbox = await startSandbox();
    const quorum = async () =>
      (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } })).body.id;
    const [owner, signer, nested] = [await quorum(), await quorum(), await quorum()];
    const wallet = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner_id: owner, additional_signers: [{ signer_id: signer }] },
    });
    await call(sandbox, 'createKeyQuorum', {
      body: { key_quorum_ids: [nested], public_keys: [bobKey.publicKey] },
    });

    const signed = { signWith: [aliceKey.privateKey] };
    const remove = (id: string) =>
      refusal(sandbox, 'deleteKeyQuorum', { path: { key_quorum_id: id } }, signed);
    for (const [id, as] of [
      [owner, 'the owner of a wallet'],
      [signer, 'a signer of a wallet'],
      [nested, 'a member of another key quorum'],
    ] as const) {
      expect(await remove(id)).toEqual({
        status: 400,
        body: {
          error: `the key quorum cannot be deleted: it is ${as}`,
          code: 'authorization_key_has_associated_wallets',
        },
      });
    }

    const change = { path: { wallet_id: wallet.body.id }, body: { owner: null, additional_signers: [] } };
    await call(sandbox, 'updateWallet', change, signed);
    for (const id of [owner, signer]) {
      const done = await call(sandbox, 'deleteKeyQuorum', { path: { key_quorum_id: id } }, signed);
      expect(done.body).toEqual({ success: true });
    }
  });
});
