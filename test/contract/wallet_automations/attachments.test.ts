import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { seededStartMs, unknownId } from '../policies/rules.ts';

let sandbox: TestSandbox;
let wallet: Wallet;
let toUsdc: string;
let toSol: string;
beforeAll(async () => {
  sandbox = await startSandbox();
  toUsdc = await makeAutomation('base');
  toSol = await makeAutomation('solana');
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
});

async function makeAutomation(chain: string): Promise<string> {
  const { body } = await call(sandbox, 'createWalletAutomation', {
    body: {
      owner_id: null,
      config: {
        trigger: { type: 'deposit', assets: { mode: 'all' } },
        action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain } },
      },
    },
  });
  return body.id;
}

const pathOf = ({ id }: Pick<Wallet, 'id'>) => ({ wallet_id: id });
const solanaAddress = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM';
const alice = { signWith: [aliceKey.privateKey] };

async function attachedTo(walletId: string): Promise<string[]> {
  const { body } = await call(sandbox, 'listWalletAutomations', { query: { wallet_id: walletId } });
  return body.data.map(({ id }) => id);
}

test('automations are attached once each, and detached', async () => {
  const path = pathOf(wallet);
  const params = { destination_address: solanaAddress };
  await call(sandbox, 'attachWalletAutomations', { path, body: { automation_ids: [toSol], params } });
  const { body } = await call(sandbox, 'attachWalletAutomations', {
    path,
    body: { automation_ids: [toUsdc] },
  });
  const at = new Date(seededStartMs).toISOString();
  expect(body.data).toEqual([
    {
      id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
      automation_id: toUsdc,
      wallet_id: wallet.id,
      status: 'enabled',
      params: null,
      created_at: at,
      updated_at: at,
    },
  ]);
  const again = await call(sandbox, 'attachWalletAutomations', {
    path,
    body: { automation_ids: [toUsdc, toUsdc] },
  });
  expect(again.body).toEqual(body);
  expect((await attachedTo(wallet.id)).sort()).toEqual([toUsdc, toSol].sort());
  const { body: shown } = await call(sandbox, 'getWallet', { path });
  expect(shown.automations?.map(({ enabled }) => enabled)).toEqual([true, true]);
  const detach = { path, body: { automation_ids: [toUsdc, unknownId] } };
  expect((await call(sandbox, 'detachWalletAutomations', detach)).body).toEqual({ success: true });
  expect(await attachedTo(wallet.id)).toEqual([toSol]);
});

test.each<[string, () => object, string]>([
  ['an unknown automation', () => ({ automation_ids: [toUsdc, unknownId] }), '/automation_ids/1:'],
  ['proceeds on a chain that the wallet is not on', () => ({ automation_ids: [toSol] }), '/params:'],
  [
    'an address of another chain type',
    () => ({ automation_ids: [toUsdc], params: { destination_address: solanaAddress } }),
    '/params/destination_address:',
  ],
])('%s is refused', async (_, body, field) => {
  const answer = await refusal(sandbox, 'attachWalletAutomations', { path: pathOf(wallet), body: body() });
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
  expect(answer.body.error).toContain(field);
  expect(await attachedTo(wallet.id)).toEqual([]);
});

test('an automation and a wallet of another app are unknown', async () => {
  const other = await asOtherApp(sandbox);
  const { body: theirs } = await call(other, 'createWallet', { body: { chain_type: 'ethereum' } });
  const body = { automation_ids: [toUsdc] };
  expect(await refusal(other, 'attachWalletAutomations', { path: pathOf(theirs), body })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data' },
  });
  for (const operation of ['attachWalletAutomations', 'detachWalletAutomations'] as const) {
    expect((await refusal(other, operation, { path: pathOf(wallet), body })).status).toBe(404);
  }
});

test('an app has at most 100 automations, a wallet at most 20 of them', async () => {
  const other = await asOtherApp(sandbox);
  const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } } as const;
  const config = { trigger: { type: 'deposit', assets: { mode: 'all' } }, action } as const;
  const input = { body: { owner_id: null, config } };
  const ids: string[] = [];
  for (let count = 0; count < 100; count += 1) {
    ids.push((await call(other, 'createWalletAutomation', input)).body.id);
  }
  const tooMany = { status: 400, body: { code: 'invalid_request' } };
  expect(await refusal(other, 'createWalletAutomation', input)).toMatchObject(tooMany);
  const { body: theirs } = await call(other, 'createWallet', { body: { chain_type: 'ethereum' } });
  const attach = (automation_ids: string[]) => ({ path: pathOf(theirs), body: { automation_ids } });
  expect(await refusal(other, 'attachWalletAutomations', attach(ids.slice(0, 21)))).toMatchObject(tooMany);
  await call(other, 'attachWalletAutomations', attach(ids.slice(0, 20)));
  expect(await refusal(other, 'attachWalletAutomations', attach(ids.slice(20, 21)))).toMatchObject(tooMany);
  await call(other, 'deleteWalletAutomation', { path: { automation_id: ids[0]! } });
  await call(other, 'createWalletAutomation', input);
  await call(other, 'attachWalletAutomations', attach(ids.slice(20, 21)));
});

test('an additional signer cannot attach', async () => {
  const { body: signer } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  const { body: owned } = await call(sandbox, 'createWallet', {
    body: {
      chain_type: 'ethereum',
      owner: { public_key: aliceKey.publicKey },
      additional_signers: [{ signer_id: signer.id }],
    },
  });
  const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
  const refused = await refusal(sandbox, 'attachWalletAutomations', input, { signWith: [bobKey.privateKey] });
  expect(refused.body.code).toBe('zero_correct_authorization_signatures');
  await call(sandbox, 'attachWalletAutomations', input, alice);
});

test('deleting an automation detaches it; disabling it does not', async () => {
  const automation = await makeAutomation('base');
  const path = pathOf(wallet);
  await call(sandbox, 'attachWalletAutomations', { path, body: { automation_ids: [automation] } });
  await call(sandbox, 'updateWalletAutomation', {
    path: { automation_id: automation },
    body: { enabled: false },
  });
  const { body: shown } = await call(sandbox, 'getWallet', { path });
  expect(shown.automations).toEqual([{ id: automation, enabled: false }]);
  await call(sandbox, 'deleteWalletAutomation', { path: { automation_id: automation } });
  expect((await call(sandbox, 'getWallet', { path })).body.automations).toBeUndefined();
});

describe('attachments end', () => {
  let owned: Wallet;
  beforeEach(async () => {
    owned = (
      await call(sandbox, 'createWallet', {
        body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
      })
    ).body;
    const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
    await call(sandbox, 'attachWalletAutomations', input, alice);
    expect(await attachedTo(owned.id)).toEqual([toUsdc]);
  });

  test('with a change of the owner, not with another change', async () => {
    const path = pathOf(owned);
    await call(sandbox, 'updateWallet', { path, body: { display_name: 'Ours' } }, alice);
    expect(await attachedTo(owned.id)).toEqual([toUsdc]);
    await call(sandbox, 'updateWallet', { path, body: { owner: { public_key: bobKey.publicKey } } }, alice);
    expect(await attachedTo(owned.id)).toEqual([]);
  });

  test('with archiving, also if the wallet is restored', async () => {
    await call(sandbox, 'archiveWallet', { path: pathOf(owned) }, alice);
    expect(await attachedTo(owned.id)).toEqual([]);
  });

  test('with export, after which nothing can be attached', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const recipient = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    const body = { encryption_type: 'HPKE', recipient_public_key: recipient } as const;
    await call(sandbox, 'exportWallet', { path: pathOf(owned), body }, alice);
    expect(await attachedTo(owned.id)).toEqual([]);
    const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
    const refused = await refusal(sandbox, 'attachWalletAutomations', input, alice);
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_state']);
  });
});
