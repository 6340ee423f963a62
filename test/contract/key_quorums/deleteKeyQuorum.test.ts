import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

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
  const remove = (id: string) => refusal(sandbox, 'deleteKeyQuorum', { path: { key_quorum_id: id } }, signed);
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
